#!/usr/bin/perl
# A resident process for leat, to copy. RESIDENT PROCESSES in leatd(8) has the rules.
#
# [task]
# command = exec /usr/local/bin/handler.pl
# resident = yes
# batch_format = json
use strict;
use warnings;
use IO::Handle;
use JSON::PP;

# Does one task. An exception is a failure, and its text is the reason.
sub work {
    my ($task) = @_;
    my $payload = $task->{fields}{payload} // '';
    die "there is no payload\n" if $payload eq '';
    print "attempt $task->{attempt} of $payload\n";
}

binmode STDOUT, ':encoding(UTF-8)';
STDOUT->autoflush(1);    # before the report, so that output is its task's
open my $report, '>&=', 3 or die "descriptor 3: $!";
$report->autoflush(1);
print $report "ready\n";
while (my $line = <STDIN>) {    # until the end of the file
    my $task   = decode_json($line);
    my $result = eval { work($task); 'ok' };
    if (!defined $result) {
        ($result = "retry $@") =~ s/\s+/ /g;
        $result = substr $result, 0, 500;
    }
    print $report "$task->{index} $result\n";
}
