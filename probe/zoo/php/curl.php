<?php
[, $url, $method, $body] = $argv;
$curl = curl_init($url);
curl_setopt_array($curl, [CURLOPT_CUSTOMREQUEST => $method, CURLOPT_RETURNTRANSFER => true, CURLOPT_CAINFO => getenv('SSL_CERT_FILE')]);
if ($body !== '') {
    curl_setopt($curl, CURLOPT_POSTFIELDS, $body);
}
$whole = curl_exec($curl) !== false;
$status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
exit($whole && $status >= 200 && $status < 300 ? 0 : 1);
