// A producer in Go with redigo. Without REDIS_SOCKET it uses the Redis of this host.
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const queue = "thumbnails"

// add adds one task with these fields. It returns "new" or "exists", and the id.
func add(conn redis.Conn, fields ...any) (string, string, error) {
	args := redis.Args{"leat_add", 1, queue}.Add(fields...)
	reply, err := redis.Strings(conn.Do("FCALL", args...))
	if err != nil {
		return "", "", err // FULL: try again later. REFUSED: the task is wrong
	}
	return reply[0], reply[1], nil
}

// addMany adds all of these tasks or none. It returns "new" or "exists", and the id, of each.
func addMany(conn redis.Conn, tasks []map[string]any) ([]string, error) {
	list, err := json.Marshal(tasks)
	if err != nil {
		return nil, err
	}
	return redis.Strings(conn.Do("FCALL", "leat_add_many", 1, queue, list))
}

// signed adds not_after, one day ahead, and signature to the fields.
func signed(fields map[string]string, stream, name string, key []byte) error {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	nonce := hex.EncodeToString(random)
	fields["not_after"] = strconv.FormatInt(time.Now().Unix()+86400, 10)
	names := make([]string, 0, len(fields))
	for one := range fields {
		names = append(names, one)
	}
	sort.Strings(names)
	parts := []string{"leat1", name, nonce, stream}
	for _, one := range names {
		parts = append(parts, one, fields[one])
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		fmt.Fprintf(mac, "%d:%s,", len(part), part)
	}
	fields["signature"] = fmt.Sprintf("leat1:%s:%s:%x", name, nonce, mac.Sum(nil))
	return nil
}

func addSigned(conn redis.Conn, path string) error {
	key, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	task := map[string]string{"command": "echo signed $TASK_SIZE >> done", "SIZE": "32", "a": "", "payload": "\x00\xff"}
	if err = signed(task, queue, "2026a", bytes.TrimSuffix(key, []byte("\n"))); err != nil {
		return err
	}
	var fields []any
	for name, value := range task {
		fields = append(fields, name, value)
	}
	_, _, err = add(conn, fields...)
	return err
}

func produce(conn redis.Conn) error {
	// one task, by a plain XADD
	tid, err := redis.String(conn.Do("XADD", queue, "*", "command", "echo plain $TASK_SIZE >> done", "SIZE", 640))
	if err != nil {
		return err
	}
	fmt.Println(tid)

	// at most one with that key, in a lane, in half a second: both calls answer the same id
	for i := 0; i < 2; i++ {
		what, tid, err := add(conn, "command", "echo index >> done", "unique", "index", "lane", "albums",
			"delay", "500ms")
		if err != nil {
			return err
		}
		fmt.Println(what, tid)
	}

	// two tasks, both or none
	both, err := addMany(conn, []map[string]any{
		{"command": "echo two >> done"}, {"command": "echo three $TASK_SIZE >> done", "SIZE": 64}})
	if err != nil {
		return err
	}
	fmt.Printf("%s %s\n%s %s\n", both[0], both[1], both[2], both[3])

	// any bytes for the task's stdin
	what, tid, err := add(conn, "command", "cat > bytes", "payload", []byte{0, 1, 254, 255, '\n'})
	if err != nil {
		return err
	}
	fmt.Println(what, tid)

	// a task that is refused
	_, _, err = add(conn, "command", "echo never >> done", "result_ttl", "soon")
	if err == nil || !strings.HasPrefix(err.Error(), "REFUSED") {
		return err
	}
	fmt.Printf("%s\nrefused: 65\n", err)

	// a signed task, for workers with [security] key_files = 2026a:FILE
	if path := os.Getenv("LEAT_KEY"); path != "" {
		return addSigned(conn, path)
	}
	return nil
}

func run() error {
	network, address := "tcp", "localhost:6379"
	if socket := os.Getenv("REDIS_SOCKET"); socket != "" {
		network, address = "unix", socket
	}
	conn, err := redis.Dial(network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	return produce(conn)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if strings.HasPrefix(err.Error(), "FULL") {
			os.Exit(75) // nothing was added: try again later
		}
		os.Exit(69)
	}
}
