use strict;
use warnings;
use Mojo::UserAgent;

my ($url, $method, $body) = @ARGV;
my $agent = Mojo::UserAgent->new(ca => $ENV{SSL_CERT_FILE});
my $response = $agent->start($agent->build_tx($method => $url => $body))->result;
die $response->code, "\n" unless $response->is_success;
