-- What makes a row of the outbox hard to get wrong for applications in any
-- language. A fault is refused within the application's transaction: without it,
-- it would come to light as a dead letter.

{postgres} ALTER TABLE forbear_outbox ALTER COLUMN message_id SET DEFAULT 'msg_' || replace(gen_random_uuid()::text, '-', '');

-- The names of the constraints are what an application reads. Rows that are there
-- already are the relay's.
{postgres} ALTER TABLE forbear_outbox
  ADD CONSTRAINT forbear_outbox_not_before_is_in_microseconds CHECK (not_before = 0 OR not_before BETWEEN 1000000000000000 AND 253402300799999999) NOT VALID,
  ADD CONSTRAINT forbear_outbox_names_endpoint_or_application CHECK ((COALESCE(endpoint, '') = '') <> (COALESCE(application, '') = '')) NOT VALID;
{sqlite} CREATE TRIGGER forbear_outbox_not_before BEFORE INSERT ON forbear_outbox
  WHEN NEW.not_before IS NOT NULL AND NOT (typeof(NEW.not_before) IN ('integer', 'real') AND (NEW.not_before = 0 OR NEW.not_before BETWEEN 1000000000000000 AND 253402300799999999))
  BEGIN SELECT RAISE(ABORT, 'forbear_outbox: not_before is in microseconds since 1970');
  END;
{sqlite} CREATE TRIGGER forbear_outbox_destination BEFORE INSERT ON forbear_outbox
  WHEN (COALESCE(NEW.endpoint, '') = '') = (COALESCE(NEW.application, '') = '')
  BEGIN SELECT RAISE(ABORT, 'forbear_outbox: a row names an endpoint or an application');
  END;

-- forbear_send inserts a message and returns its id. It runs with the rights of
-- its caller, and finds the tables where this migration did.
{postgres} CREATE FUNCTION forbear_send(type text, payload text, endpoint text DEFAULT NULL, application text DEFAULT NULL,
  message_id text DEFAULT NULL, order_key text DEFAULT NULL, not_before timestamptz DEFAULT NULL, headers jsonb DEFAULT NULL,
  source text DEFAULT NULL, subject text DEFAULT NULL, idempotency_key text DEFAULT NULL, correlation_id text DEFAULT NULL,
  content_type text DEFAULT NULL, check_endpoint boolean DEFAULT false)
  RETURNS text LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  #variable_conflict use_variable
  DECLARE
    fault text;
  BEGIN
    message_id := COALESCE(message_id, 'msg_' || replace(gen_random_uuid()::text, '-', ''));
    fault := CASE
      WHEN (endpoint IS NULL) = (application IS NULL) THEN 'name an endpoint or an application'
      WHEN COALESCE(endpoint, application) !~ '^[!-~]{1,64}$' THEN 'an endpoint or application is 1 to 64 visible characters'
      WHEN message_id !~ '^[!-~]{1,128}$' THEN 'message_id is not 1 to 128 visible characters'
      WHEN idempotency_key !~ '^[!-~]{1,64}$' THEN 'idempotency_key is not 1 to 64 visible characters'
      WHEN payload IS NULL THEN 'payload is NULL'
      WHEN octet_length(payload) > 1048576 THEN 'payload has more than 1 MiB'
      WHEN EXISTS (SELECT FROM unnest(ARRAY[type, source, subject, order_key, correlation_id, content_type]) v WHERE octet_length(v) > 256 OR v ~ '[\u0001-\u001F\u007F]')
        THEN 'type, source, subject, order_key, correlation_id or content_type has more than 256 bytes or control characters'
      WHEN jsonb_typeof(headers) <> 'object' THEN 'headers is no JSON object of names and values'
    END;
    IF fault IS NOT NULL THEN
      RAISE EXCEPTION 'forbear_send: message %: %', quote_literal(left(message_id, 128)), fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF check_endpoint AND endpoint IS NOT NULL AND NOT EXISTS (SELECT FROM forbear_endpoints t WHERE t.id = endpoint AND t.deleted IS NULL) THEN
      RAISE EXCEPTION 'forbear_send: message %: unknown endpoint %', quote_literal(message_id), quote_literal(endpoint) USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF check_endpoint AND application IS NOT NULL AND NOT EXISTS (SELECT FROM forbear_applications t WHERE t.id = application) THEN
      RAISE EXCEPTION 'forbear_send: message %: unknown application %', quote_literal(message_id), quote_literal(application) USING ERRCODE = 'foreign_key_violation';
    END IF;
    INSERT INTO forbear_outbox (message_id, endpoint, application, type, source, subject, order_key, idempotency_key, correlation_id, content_type, not_before, headers, body)
    VALUES (message_id, endpoint, application, type, source, subject, order_key, idempotency_key, correlation_id, content_type,
      (extract(epoch FROM not_before) * 1000000)::bigint,
      (SELECT jsonb_agg(jsonb_build_object('name', h.key, 'value', h.value))::text FROM jsonb_each_text(headers) h),
      convert_to(payload, 'UTF8'));
    RETURN message_id;
  END $$;
{postgres} CREATE FUNCTION forbear_send(type text, payload jsonb, endpoint text DEFAULT NULL, application text DEFAULT NULL,
  message_id text DEFAULT NULL, order_key text DEFAULT NULL, not_before timestamptz DEFAULT NULL, headers jsonb DEFAULT NULL,
  source text DEFAULT NULL, subject text DEFAULT NULL, idempotency_key text DEFAULT NULL, correlation_id text DEFAULT NULL,
  content_type text DEFAULT NULL, check_endpoint boolean DEFAULT false)
  RETURNS text LANGUAGE sql SET search_path FROM CURRENT AS $$
  SELECT forbear_send(type, payload::text, endpoint, application, message_id, order_key, not_before, headers,
    source, subject, idempotency_key, correlation_id, content_type, check_endpoint) $$;
