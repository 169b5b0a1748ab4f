use strict;
use warnings;
use LWP::UserAgent;

my ($url, $method, $body) = @ARGV;
my $agent = LWP::UserAgent->new;
my $response = $agent->request(HTTP::Request->new($method, $url, undef, $body));
die $response->status_line, "\n" unless $response->is_success;
