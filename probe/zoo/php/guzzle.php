<?php
require 'GuzzleHttp/autoload.php';

[, $url, $method, $body] = $argv;
$client = new GuzzleHttp\Client(['verify' => getenv('SSL_CERT_FILE')]);
$client->request($method, $url, $body === '' ? [] : ['body' => $body]);
