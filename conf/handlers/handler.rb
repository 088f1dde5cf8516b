#!/usr/bin/ruby
# A resident process for leat, to copy. RESIDENT PROCESSES in leatd(8) has the rules.
#
# [task]
# command = exec /usr/local/bin/handler.rb
# resident = yes
# batch_format = json
require 'json'

# Does one task. An exception is a failure, and its text is the reason.
def work(task)
  payload = task['fields']['payload'].to_s
  raise 'there is no payload' if payload.empty?

  puts "attempt #{task['attempt']} of #{payload}"
end

$stdout.sync = true # before the report, so that output is its task's
report = IO.new(3, 'w')
report.sync = true
report.puts 'ready'
$stdin.each_line do |line| # until the end of the file
  task = JSON.parse(line)
  begin
    work(task)
    result = 'ok'
  rescue StandardError => e
    result = "retry #{e.message.tr("\n", ' ')[0, 500]}"
  end
  report.puts "#{task['index']} #{result}"
end
