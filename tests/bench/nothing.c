/* A program that does nothing. Linked statically, it stands for tasks that start fast, or for hosts
 * with so many cores that leatd's one thread is the limit. */
int main(void)
{
    return 0;
}
