use strict;
use warnings;
use Furl;

my ($url, $method, $body) = @ARGV;
my $response = Furl->new(ssl_opts => { SSL_ca_file => $ENV{SSL_CERT_FILE} })->request(method => $method, url => $url, content => $body);
die $response->status_line, "\n" unless $response->is_success;
