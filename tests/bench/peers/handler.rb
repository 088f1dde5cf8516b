# A resident process that does nothing, as people would write it.
require 'json'

def work(_task); end

report = IO.new(3, 'w')
report.sync = true
report.puts 'ready'
$stdin.each_line do |line|
  task = JSON.parse(line)
  begin
    work(task)
    result = 'ok'
  rescue StandardError => e
    result = "retry #{e.message}"
  end
  report.puts "#{task['index']} #{result}"
end
