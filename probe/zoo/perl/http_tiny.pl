use strict;
use warnings;
use HTTP::Tiny;

my ($url, $method, $body) = @ARGV;
my $response = HTTP::Tiny->new(verify_SSL => 1)->request($method, $url, length $body ? { content => $body } : {});
die "$response->{status} $response->{reason}\n" unless $response->{success};
