<?php
// Guzzle's own middleware, with its own delay, and the decider that people copy.
require 'GuzzleHttp/autoload.php';

use GuzzleHttp\Exception\ConnectException;
use GuzzleHttp\HandlerStack;
use GuzzleHttp\Middleware;

[, $url, $method, $body] = $argv;
$stack = HandlerStack::create();
$stack->push(Middleware::retry(function ($retries, $request, $response = null, $reason = null) {
    return $retries < 3 && ($reason instanceof ConnectException || ($response && $response->getStatusCode() >= 500));
}));
$client = new GuzzleHttp\Client(['handler' => $stack, 'verify' => getenv('SSL_CERT_FILE')]);
$client->request($method, $url, $body === '' ? [] : ['body' => $body]);
