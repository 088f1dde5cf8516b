/*
 * Exempts a large array from the zeroing of automatic variables (-ftrivial-auto-var-init=zero),
 * where zeroing it costs more than the work with it. The array must be written before it is read.
 */
#ifndef LEAT_BASE_UNINITIALIZED_H
#define LEAT_BASE_UNINITIALIZED_H

#define UNINITIALIZED
#ifdef __has_attribute
#if __has_attribute(uninitialized)
#undef UNINITIALIZED
#define UNINITIALIZED __attribute__((uninitialized))
#endif
#endif

#endif
