package retry
