# A producer in Ruby with the gem redis. Without REDIS_SOCKET it uses the Redis of this host.
require 'json'
require 'openssl'
require 'redis'
require 'securerandom'

# Adds a task, a hash of fields. Returns 'new' or 'exists', and the id.
def add(client, queue, task)
  client.call('FCALL', 'leat_add', 1, queue, *task.to_a.flatten)
end

# Adds all of these tasks or none. Returns 'new' or 'exists', and the id, of each.
def add_many(client, queue, tasks)
  client.call('FCALL', 'leat_add_many', 1, queue, JSON.generate(tasks)).each_slice(2).to_a
end

# The task with not_after, one day ahead, and signature.
def signed(task, stream, name, path)
  nonce = SecureRandom.hex(16)
  task = task.transform_keys(&:to_s).merge('not_after' => Time.now.to_i + 86_400)
  parts = ['leat1', name, nonce, stream, *task.sort.flatten].map { |part| part.to_s.b }
  form = parts.map { |part| "#{part.bytesize}:".b + part + ','.b }.join
  mac = OpenSSL::HMAC.hexdigest('SHA256', File.binread(path).delete_suffix("\n"), form)
  task.merge('signature' => "leat1:#{name}:#{nonce}:#{mac}")
end

def show(*answers)
  answers.each { |what, tid| puts "#{what} #{tid}" }
end

def produce(client)
  # one task, by a plain XADD
  puts client.xadd('thumbnails', { 'command' => 'echo plain $TASK_SIZE >> done', 'SIZE' => 640 })

  # at most one with that key, in a lane, in half a second: both calls answer the same id
  index = { 'command' => 'echo index >> done', 'unique' => 'index', 'lane' => 'albums', 'delay' => '500ms' }
  2.times { show(add(client, 'thumbnails', index)) }

  # two tasks, both or none
  show(*add_many(client, 'thumbnails', [{ command: 'echo two >> done' },
                                        { command: 'echo three $TASK_SIZE >> done', SIZE: 64 }]))

  # any bytes for the task's stdin
  show(add(client, 'thumbnails', { 'command' => 'cat > bytes', 'payload' => "\x00\x01\xfe\xff\n".b }))

  # a task that is refused
  begin
    add(client, 'thumbnails', { 'command' => 'echo never >> done', 'result_ttl' => 'soon' })
  rescue Redis::CommandError => e
    raise unless e.message.start_with?('REFUSED')

    puts e.message, 'refused: 65'
  end

  # a signed task, for workers with [security] key_files = 2026a:FILE
  return unless ENV['LEAT_KEY']

  task = { 'command' => 'echo signed $TASK_SIZE >> done', 'SIZE' => 32, 'a' => '', 'payload' => "\x00\xff".b }
  add(client, 'thumbnails', signed(task, 'thumbnails', '2026a', ENV['LEAT_KEY']))
end

begin
  produce(ENV['REDIS_SOCKET'] ? Redis.new(path: ENV['REDIS_SOCKET']) : Redis.new)
rescue Redis::CommandError => e
  # FULL: nothing was added, try again later
  warn e.message
  exit e.message.start_with?('FULL') ? 75 : 69
end
