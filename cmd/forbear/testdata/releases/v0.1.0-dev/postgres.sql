--
-- PostgreSQL database dump
--

\restrict yHgkgKgSqwwMr4HqiJ0Ldzee4XkzipkkgdVilmdqmvTKmDvxWEpOylAcGZ808fk

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: forbear_send(text, jsonb, text, text, text, text, timestamp with time zone, jsonb, text, text, text, text, text, boolean); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.forbear_send(type text, payload jsonb, endpoint text DEFAULT NULL::text, application text DEFAULT NULL::text, message_id text DEFAULT NULL::text, order_key text DEFAULT NULL::text, not_before timestamp with time zone DEFAULT NULL::timestamp with time zone, headers jsonb DEFAULT NULL::jsonb, source text DEFAULT NULL::text, subject text DEFAULT NULL::text, idempotency_key text DEFAULT NULL::text, correlation_id text DEFAULT NULL::text, content_type text DEFAULT NULL::text, check_endpoint boolean DEFAULT false) RETURNS text
    LANGUAGE sql
    SET search_path TO '$user', 'public'
    AS $$
  SELECT forbear_send(type, payload::text, endpoint, application, message_id, order_key, not_before, headers,
    source, subject, idempotency_key, correlation_id, content_type, check_endpoint) $$;


--
-- Name: forbear_send(text, text, text, text, text, text, timestamp with time zone, jsonb, text, text, text, text, text, boolean); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.forbear_send(type text, payload text, endpoint text DEFAULT NULL::text, application text DEFAULT NULL::text, message_id text DEFAULT NULL::text, order_key text DEFAULT NULL::text, not_before timestamp with time zone DEFAULT NULL::timestamp with time zone, headers jsonb DEFAULT NULL::jsonb, source text DEFAULT NULL::text, subject text DEFAULT NULL::text, idempotency_key text DEFAULT NULL::text, correlation_id text DEFAULT NULL::text, content_type text DEFAULT NULL::text, check_endpoint boolean DEFAULT false) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $_$
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
  END $_$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: forbear_alerts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_alerts (
    id bigint NOT NULL,
    queue text NOT NULL,
    reason text NOT NULL,
    state smallint NOT NULL,
    count bigint NOT NULL,
    first_at bigint NOT NULL,
    last_at bigint NOT NULL,
    due bigint NOT NULL,
    letter text DEFAULT ''::text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    spec text DEFAULT '{}'::text NOT NULL
);


--
-- Name: forbear_alerts_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.forbear_alerts ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.forbear_alerts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: forbear_applications; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_applications (
    id text NOT NULL,
    spec text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created bigint NOT NULL,
    suspended bigint,
    reason text DEFAULT ''::text NOT NULL
);


--
-- Name: forbear_attempts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_attempts (
    delivery bigint NOT NULL,
    claim integer NOT NULL,
    n integer NOT NULL,
    due bigint NOT NULL,
    at bigint NOT NULL,
    took bigint NOT NULL,
    wait bigint NOT NULL,
    error_type text NOT NULL,
    status integer NOT NULL,
    worker text NOT NULL,
    response text,
    cause text
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_limit='2000');


--
-- Name: forbear_audit; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_audit (
    id bigint NOT NULL,
    at bigint NOT NULL,
    who text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    detail text DEFAULT ''::text NOT NULL
);


--
-- Name: forbear_audit_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.forbear_audit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.forbear_audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: forbear_deliveries; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_deliveries (
    id bigint NOT NULL,
    message bigint NOT NULL,
    endpoint text NOT NULL,
    okey text,
    state smallint NOT NULL,
    due bigint NOT NULL,
    start bigint NOT NULL,
    progress text,
    fence bigint DEFAULT 0 NOT NULL,
    claims integer DEFAULT 0 NOT NULL,
    owner text,
    lease bigint,
    letter text,
    finished bigint,
    message_id text,
    cancel bigint,
    unreadable bigint
)
WITH (fillfactor='70', autovacuum_analyze_scale_factor='0.02', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_limit='2000');


--
-- Name: forbear_deliveries_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.forbear_deliveries ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.forbear_deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: forbear_dispatchers; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_dispatchers (
    owner text NOT NULL,
    expires bigint NOT NULL
);


--
-- Name: forbear_endpoints; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_endpoints (
    id text NOT NULL,
    spec text NOT NULL,
    state text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    since bigint NOT NULL,
    failing_since bigint,
    version bigint DEFAULT 1 NOT NULL,
    changed bigint DEFAULT 1 NOT NULL,
    deleted bigint,
    application text,
    disabled_by text DEFAULT ''::text NOT NULL
);


--
-- Name: forbear_holds; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_holds (
    endpoint text NOT NULL,
    kind text NOT NULL,
    owner text NOT NULL,
    why text NOT NULL,
    looks bigint NOT NULL,
    due bigint NOT NULL,
    finished bigint NOT NULL,
    expires bigint NOT NULL,
    changed bigint NOT NULL
);


--
-- Name: forbear_idempotency; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_idempotency (
    scope text NOT NULL,
    hash text NOT NULL,
    fingerprint text NOT NULL,
    operation text NOT NULL,
    state smallint NOT NULL,
    rerun smallint NOT NULL,
    owner text NOT NULL,
    fence bigint NOT NULL,
    attempt integer NOT NULL,
    lease bigint NOT NULL,
    created bigint NOT NULL,
    completed bigint,
    expires bigint NOT NULL,
    status integer,
    header text,
    body bytea,
    tombstone text DEFAULT ''::text NOT NULL,
    note text DEFAULT ''::text NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');


--
-- Name: forbear_jobs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_jobs (
    id text NOT NULL,
    spec text NOT NULL,
    state text NOT NULL,
    created bigint NOT NULL,
    owner text,
    lease bigint DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    application text
);


--
-- Name: forbear_letters; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_letters (
    seq bigint NOT NULL,
    id text NOT NULL,
    queue text NOT NULL,
    dest text NOT NULL,
    event_id text NOT NULL,
    reason text NOT NULL,
    error_type text NOT NULL,
    state text NOT NULL,
    dead_at bigint NOT NULL,
    redrives integer DEFAULT 0 NOT NULL,
    redriven bigint,
    redriver text,
    job text,
    outcome text DEFAULT ''::text NOT NULL,
    discard text,
    meta text NOT NULL,
    sealed bytea NOT NULL,
    cause text DEFAULT ''::text NOT NULL,
    application text
);


--
-- Name: forbear_letters_seq_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.forbear_letters ALTER COLUMN seq ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.forbear_letters_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: forbear_messages; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_messages (
    seq bigint NOT NULL,
    meta text NOT NULL,
    body bytea NOT NULL,
    created bigint NOT NULL,
    dropped bigint
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_limit='2000', toast.autovacuum_vacuum_scale_factor='0.01', toast.autovacuum_vacuum_threshold='1000', toast.autovacuum_vacuum_cost_limit='2000');


--
-- Name: forbear_messages_seq_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.forbear_messages ALTER COLUMN seq ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.forbear_messages_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: forbear_migrations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    applied bigint NOT NULL
);


--
-- Name: forbear_outbox; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_outbox (
    id bigint NOT NULL,
    message_id text DEFAULT ('msg_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text)) NOT NULL,
    endpoint text,
    type text,
    source text,
    subject text,
    order_key text,
    idempotency_key text,
    correlation_id text,
    content_type text,
    headers text,
    not_before bigint,
    body bytea NOT NULL,
    created bigint DEFAULT ((EXTRACT(epoch FROM clock_timestamp()) * (1000000)::numeric))::bigint NOT NULL,
    application text
);


--
-- Name: forbear_outbox_aside; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_outbox_aside (
    tenant text NOT NULL,
    id bigint NOT NULL,
    message_id text,
    endpoint text,
    type text,
    source text,
    subject text,
    order_key text,
    idempotency_key text,
    correlation_id text,
    content_type text,
    headers text,
    not_before bigint,
    body bytea,
    created bigint,
    application text
);


--
-- Name: forbear_outbox_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.forbear_outbox ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.forbear_outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: forbear_outbox_refused; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_outbox_refused (
    letter text NOT NULL,
    id bigint,
    message_id text,
    endpoint text,
    type text,
    source text,
    subject text,
    order_key text,
    idempotency_key text,
    correlation_id text,
    content_type text,
    headers text,
    not_before bigint,
    body bytea,
    created bigint,
    application text
);


--
-- Name: forbear_sweeps; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_sweeps (
    name text NOT NULL,
    finished bigint NOT NULL,
    delivery bigint NOT NULL
);


--
-- Name: forbear_tallies; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_tallies (
    endpoint text NOT NULL,
    slot bigint NOT NULL,
    owner text NOT NULL,
    counts text NOT NULL
);


--
-- Name: forbear_tokens; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forbear_tokens (
    name text NOT NULL,
    hash text NOT NULL,
    scope text NOT NULL,
    application text NOT NULL,
    created bigint NOT NULL,
    creator text NOT NULL,
    expires bigint NOT NULL
);


--
-- Data for Name: forbear_alerts; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_alerts (id, queue, reason, state, count, first_at, last_at, due, letter, detail, spec) FROM stdin;
1	webhooks	terminal	0	1	1795789484120514	1795789484120520	1795789484120526	dlq_06h1ts7g7c4frg3mkz71ypn6x4	terminal (http_400) after 1 attempt	{}
\.


--
-- Data for Name: forbear_applications; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_applications (id, spec, version, created, suspended, reason) FROM stdin;
shop	sealed:CGEwM2Q0ZDQ08aHyMXKHIcvoTPXoCAkhwFop+Qi2PRCGVGEBV2Eng7JRE/w5qdw0+Vlq9E0O5y02BxI2XZM=	1	1795789483911779	\N	
\.


--
-- Data for Name: forbear_attempts; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_attempts (delivery, claim, n, due, at, took, wait, error_type, status, worker, response, cause) FROM stdin;
1	1	1	1795789484065114	1795789484072162	810	0		200	vm-31886-t9jnds2c	\N	\N
3	1	1	1795789484092711	1795789484096763	261	755484	http_503	503	vm-31886-t9jnds2c	\N	sealed:CGEwM2Q0ZDQ0NbxrP7wL7KnLLqNa2E2/2vNpTg3JzsuLD6y3ENpd1swgJHVlywZEBTA++TWQfiMOSUBFopSR1/7g0WOie0n27nphuyEeBrOVSRhXtmGxym+9M4lHgDJsbHtEHUkOo+s33h7v4+fJqd6xv1TPD8C8SGolYn7x5RlYKDYPs+DgGjo+
2	1	1	1795789484070208	1795789484090404	708	0	http_400	400	vm-31886-t9jnds2c	\N	sealed:CGEwM2Q0ZDQ0momAM5H9+EbIwLuvDC1N7mBzz67FUBTLDAfZ1YKU6crK1WNHdY3thNIxMaiVVUCMD5MCn1RQCNh8YJ56Y4iG4iVXqR5BU/pNmdKmBblIdTzEO++hcu73BbCT5cp4xPO5oAvb/ICk/0mrIvwsUvx8w5CzJ21DHcs5
\.


--
-- Data for Name: forbear_audit; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_audit (id, at, who, action, target, detail) FROM stdin;
1	1795789484019660	anonymous at 127.0.0.1	application-put	shop	version 1
2	1795789484039384	anonymous at 127.0.0.1	endpoint-put	well	version 1
3	1795789484047231	anonymous at 127.0.0.1	endpoint-put	refuses	version 1
4	1795789484060016	anonymous at 127.0.0.1	endpoint-put	down	version 1
5	1795789484123476	anonymous at 127.0.0.1	message-cancel	canceled	endpoint well
6	1795789484175148	root	token-create	ops	admin , until 2028-10-27T14:24:44Z
\.


--
-- Data for Name: forbear_deliveries; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_deliveries (id, message, endpoint, okey, state, due, start, progress, fence, claims, owner, lease, letter, finished, message_id, cancel, unreadable) FROM stdin;
1	1	well	\N	2	1795789484065114	1795789484065175	\N	1	1	vm-31886-t9jnds2c	\N	\N	1795789484088139	done	\N	\N
4	4	down	k	4	1795789484096714	1795789484096719	\N	0	0	\N	\N	\N	\N	behind	\N	\N
3	3	down	k	0	1795789484854054	1795789484092739	{"attempts":1,"state":{"attempt":2,"start":"2026-11-27T14:24:44.092739Z","prev_wait":755484820,"needs_key":true},"last":"http_503"}	1	1	vm-31886-t9jnds2c	\N	\N	\N	waits	\N	\N
2	2	refuses	\N	3	1795789484070208	1795789484070251	{"attempts":1,"state":{"attempt":1,"start":"2026-11-27T14:24:44.070251Z","needs_key":true},"last":"http_400"}	1	1	vm-31886-t9jnds2c	\N	\N	1795789484102605	dead	\N	\N
5	5	well	\N	0	1796221484007433	1796221484007444	\N	0	0	\N	\N	\N	\N	later	\N	\N
6	6	well	\N	5	1796221484000492	1796221484000496	\N	0	0	\N	\N	\N	1795789484122970	canceled	\N	\N
\.


--
-- Data for Name: forbear_dispatchers; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_dispatchers (owner, expires) FROM stdin;
\.


--
-- Data for Name: forbear_endpoints; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_endpoints (id, spec, state, reason, since, failing_since, version, changed, deleted, application, disabled_by) FROM stdin;
well	sealed:CGEwM2Q0ZDQ0JeCuW+THtuY4TvhHDlBrfFNmNuj31u4j6cN3UpsML0K2OgOI652/apNP4Bo7IFXEA28WBRv6XE8LQPLgREsaJcuZbxUw9axr85igOeqiymfMY/psxQD1gflBxRLdvzDndMu4Quv+0uHSCl6LxnoPxYTeruU+n8cJn0OynU2oBoNXe6+2e8dbvXAiTvO63FBAUL46M53jB19C0V+KefMX6xLrePH4kVkInyx6iI2+TO2n5TN2H/1cXVcgsd8uwJNt1LQkzI33R4vyUMzfi099izWujOc12Np8LzqoHzb3X6avvHpyiLdhmuAUxVAT2aTM6yDP9FlQVCkH8Tu2iJuWyLb7q7ot	enabled		1795789484036414	\N	1	1	\N	shop	
refuses	sealed:CGEwM2Q0ZDQ0B40mjS7OrOjgDzOqKEPCLzTeQ1C51pUbnPx2G/G3rStaTUIjYdhANeouHtTYSFx2HKvgkpjdamIaK0FB+GGglInKmbUCfMsI73XIpk4RkBuSl1COHR9mkRX5mfxhCqJUjZT3HypYw3ozEIbRXFAxZL832FqTF3KfKpl9jNzd+ideAOsVG8VvBbogF5oW+752F1IO2N4uWzNqpt+J/U/16cBsYJShSkKogPoyEjeFlU1TZe/j1RDViWLMx/RTv1WOEE17Yom0NMAaDUwjJcgiuvbcw2FXmgLS9WfunTw9Ryx3+tisWulsCkJ/Hcck+8gyAWejA8GQKSl+NuBUV/bQioHr4vxU7+cG7r20	enabled		1795789484045740	1795789484091113	1	2	\N	shop	
down	sealed:CGEwM2Q0ZDQ0MR8VNl1DgCDwMQebCy3QLb3RQxwWjhF9NkqUkPM63p+9xw/XAzm01mmYXNZxXWjfw0PBlsgnvMOahcYEHvfcwQrO0hljsPJRxsr4eFuv59SfHvpOr5vSiwW8fmT1W5oPSMahDIWyWR5rj0gz7oaKeaJv10+blyLrpN1q2aAWCC6jGbjneUxBitrJMLbrNCBBS2HJHBK0KSq48EnMNmBY/bGPNMaiQTOQuw5ATwckuoC2oTSe8virQF81WbC5AnSSaoh9zSEAWlgLz+wsIzyNAnCijrfpfWQvvJM5vLzFZuTaU9sq/6PCUs12xrA0dx+6MJn3EcKcz4uITTuf1FEk43zoebjd	enabled		1795789484054655	1795789484097025	1	3	\N	shop	
\.


--
-- Data for Name: forbear_holds; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_holds (endpoint, kind, owner, why, looks, due, finished, expires, changed) FROM stdin;
\.


--
-- Data for Name: forbear_idempotency; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_idempotency (scope, hash, fingerprint, operation, state, rerun, owner, fence, attempt, lease, created, completed, expires, status, header, body, tombstone, note) FROM stdin;
all	-NlLF89rfVva-tR6mzIAlilwWPUnD8cGHNu2NAykKb4	4UeXpXRdC-WhYiQTuGH3FrBG3Nh3p6Mv6Ob9ik0IejI	POST /pay	2	0	ZW7OIOMPQZLP2TJ5GKJDSH4PRI	1	1	1795789514133208	1795789484133260	1795789484140173	1795962284140179	200	sealed:CGEwM2Q0ZDQ0JLBOHPVFLyc6uCH420P/cHFIFLZHe6ajRSLaz7KyVKHNppIZGgO+enA9GhHjgy9kozIknvPJ1mrKROQxDfrumMAMBl3R3nyP0g8=	\\x086130336434643434865ab026de06164e4fccf89ad5b736f5ab5dd9af7df94d16360cb0198522c9519f52		
\.


--
-- Data for Name: forbear_jobs; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_jobs (id, spec, state, created, owner, lease, fence, application) FROM stdin;
\.


--
-- Data for Name: forbear_letters; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_letters (seq, id, queue, dest, event_id, reason, error_type, state, dead_at, redrives, redriven, redriver, job, outcome, discard, meta, sealed, cause, application) FROM stdin;
1	dlq_06h1ts7g7c4frg3mkz71ypn6x4	webhooks	refuses	dead	terminal	http_400	dead	1795789484116066	0	\N	\N	\N		\N	{"id":"dlq_06h1ts7g7c4frg3mkz71ypn6x4","queue":"webhooks","destination":"refuses","application":"shop","event_id":"dead","idempotency_key":"dead","correlation_id":"dead","policy":{"kind":"webhook"},"policy_version":"v1-e2ab7eff","reason":"terminal","error_type":"http_400","status":400,"description":"terminal (http_400) after 1 attempt","error":"http status 400 Bad Request","error_chain":["httpretry.StatusError"],"cause":"378af25da026","attempts":1,"max_attempts":5,"attempt_history":[{"attempt":1,"claim":1,"due":"2026-11-27T14:24:44.070208Z","at":"2026-11-27T14:24:44.090404Z","took_ns":708000,"error_type":"http_400","status":400,"error_class":"terminal","error":"http status 400 Bad Request","error_chain":["httpretry.StatusError"],"worker":"vm-31886-t9jnds2c"}],"enqueued_at":"2026-11-27T14:24:44.066901Z","first_attempt_at":"2026-11-27T14:24:44.090404Z","last_attempt_at":"2026-11-27T14:24:44.090404Z","dead_lettered_at":"2026-11-27T14:24:44.091252089Z","state":"dead"}	\\x086130336434643434f9aa0432a46e2ff1343a933d5c0fec0e8980b563602fb92f1d7fddb4a7131627c8402a3f0d4ab5edcfb513fee7005419bf7bd55ad844c9ca6b5b6ee513d471fc8b9cc4e4c8d4456f921b4c5ea85c2ad48f67e257619c5a478bbe34f42351830289c049000b00ca8ad1da0bcc5d232b74231457	378af25da026	shop
\.


--
-- Data for Name: forbear_messages; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_messages (seq, meta, body, created, dropped) FROM stdin;
1		\\x0861303364346434345f89d881e7daea33d28db69feec1b53334787c166cf888c32e62f8be79d3a7c52b593a117d9c04eba0	1795789484061917	\N
2		\\x0861303364346434347331ee25d7bab08187f766d23a16c5b369dae1b7ac3203ea1af2939f7b3c92bf27f1959803f4c7af32	1795789484066901	\N
3	sealed:CGEwM2Q0ZDQ0SkQ5PcTdGD1do64vCrShedKr9oRE4/FsO5YoIQddOdZ3jQHLIQyX	\\x086130336434643434e273fdf7c0539a2eb34975417120983a9b319ed4443905af2bda01db5dde8db257f3dbbd726dc7ad55d0	1795789484081399	\N
4	sealed:CGEwM2Q0ZDQ04pfWn/fwDpL2pEONREMAJfDUulfX51OIG/JiX09DbWpZyBwYNM7m	\\x0861303364346434345d2648146c939f7b5103ebd2f72da31bc2865a061accc3ebd4b826e4b941b426683b09d30ce2ea91a52b3c	1795789484094548	\N
5	sealed:CGEwM2Q0ZDQ0UWaZG7rEnr1BbMKpjzySFk/3vlp3S5C0nj3ovUS8vPbCyrzr6BTJhxlkUtFVNDTiu/w9t54i5gQH15XxZRXbpHE=	\\x086130336434643434672b156bf4c54dd3d6660b2e57cdeaae5f185cd172c8a549f6cf95fecf28548095de223c487a178c5a38	1795789484103666	\N
6	sealed:CGEwM2Q0ZDQ0of1y63JWYK2d6v5Lpo3XfXJ7Ft8wkXX6gdBA49YLaHmblzhVCGJCZKtfsVAYqKV/x0PVJK/Rxwbwe0seTUUGtqs=	\\x0861303364346434346dc3de51c3219c97729c2b0fe478d056d29a433c0cc9447ba3813678ffa20121dc1cba2d5c87c17018fc2d29cf	1795789484117242	\N
\.


--
-- Data for Name: forbear_migrations; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_migrations (version, name, applied) FROM stdin;
1	delivery	1795789483473702
10	idempotency	1795789483500373
20	identity	1795789483596372
30	cause	1795789483597115
35	endpoint_changes	1795789483612451
40	applications	1795789483664264
50	messages	1795789483678151
51	stats	1795789483707196
60	vacuum	1795789483708004
70	retention	1795789483727838
71	dispatchers	1795789483742531
80	outbox_application	1795789483743255
81	send	1795789483747824
100	suspension	1795789483765030
101	disabled_by	1795789483765529
102	application_of_letters	1795789483784554
120	holds	1795789483813829
140	unreadable	1795789483824434
\.


--
-- Data for Name: forbear_outbox; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_outbox (id, message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, not_before, body, created, application) FROM stdin;
1	row	well	order.made	\N	\N	\N	\N	\N	application/json	\N	\N	\\x7b226f66223a22726f77227d	1795789484206322	\N
\.


--
-- Data for Name: forbear_outbox_aside; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_outbox_aside (tenant, id, message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, not_before, body, created, application) FROM stdin;
\.


--
-- Data for Name: forbear_outbox_refused; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_outbox_refused (letter, id, message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, not_before, body, created, application) FROM stdin;
\.


--
-- Data for Name: forbear_sweeps; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_sweeps (name, finished, delivery) FROM stdin;
\.


--
-- Data for Name: forbear_tallies; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_tallies (endpoint, slot, owner, counts) FROM stdin;
well	2992982	vm-31886-t9jnds2c	{"r":[0,0,1,0,0,0],"l":[1,0,0,0,0,0,0,0,0,0],"t":810350,"m":810350}
refuses	2992982	vm-31886-t9jnds2c	{"r":[0,0,0,0,1,0],"l":[1,0,0,0,0,0,0,0,0,0],"t":708649,"m":708649}
down	2992982	vm-31886-t9jnds2c	{"r":[0,0,0,0,0,1],"l":[1,0,0,0,0,0,0,0,0,0],"t":261447,"m":261447}
\.


--
-- Data for Name: forbear_tokens; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_tokens (name, hash, scope, application, created, creator, expires) FROM stdin;
ops	205ebec6eeec7158fea232791fe5715ba35604c88c8c7de634e88c9ff7dafca0	admin		1795789484173992	root	1856269484174044
\.


--
-- Name: forbear_alerts_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.forbear_alerts_id_seq', 1, true);


--
-- Name: forbear_audit_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.forbear_audit_id_seq', 6, true);


--
-- Name: forbear_deliveries_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.forbear_deliveries_id_seq', 6, true);


--
-- Name: forbear_letters_seq_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.forbear_letters_seq_seq', 1, true);


--
-- Name: forbear_messages_seq_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.forbear_messages_seq_seq', 6, true);


--
-- Name: forbear_outbox_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.forbear_outbox_id_seq', 1, true);


--
-- Name: forbear_alerts forbear_alerts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_alerts
    ADD CONSTRAINT forbear_alerts_pkey PRIMARY KEY (id);


--
-- Name: forbear_applications forbear_applications_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_applications
    ADD CONSTRAINT forbear_applications_pkey PRIMARY KEY (id);


--
-- Name: forbear_attempts forbear_attempts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_attempts
    ADD CONSTRAINT forbear_attempts_pkey PRIMARY KEY (delivery, claim);


--
-- Name: forbear_audit forbear_audit_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_audit
    ADD CONSTRAINT forbear_audit_pkey PRIMARY KEY (id);


--
-- Name: forbear_deliveries forbear_deliveries_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_deliveries
    ADD CONSTRAINT forbear_deliveries_pkey PRIMARY KEY (id);


--
-- Name: forbear_dispatchers forbear_dispatchers_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_dispatchers
    ADD CONSTRAINT forbear_dispatchers_pkey PRIMARY KEY (owner);


--
-- Name: forbear_endpoints forbear_endpoints_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_endpoints
    ADD CONSTRAINT forbear_endpoints_pkey PRIMARY KEY (id);


--
-- Name: forbear_holds forbear_holds_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_holds
    ADD CONSTRAINT forbear_holds_pkey PRIMARY KEY (endpoint, kind);


--
-- Name: forbear_idempotency forbear_idempotency_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_idempotency
    ADD CONSTRAINT forbear_idempotency_pkey PRIMARY KEY (scope, hash);


--
-- Name: forbear_jobs forbear_jobs_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_jobs
    ADD CONSTRAINT forbear_jobs_pkey PRIMARY KEY (id);


--
-- Name: forbear_letters forbear_letters_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_letters
    ADD CONSTRAINT forbear_letters_pkey PRIMARY KEY (seq);


--
-- Name: forbear_messages forbear_messages_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_messages
    ADD CONSTRAINT forbear_messages_pkey PRIMARY KEY (seq);


--
-- Name: forbear_migrations forbear_migrations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_migrations
    ADD CONSTRAINT forbear_migrations_pkey PRIMARY KEY (version);


--
-- Name: forbear_outbox_aside forbear_outbox_aside_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_outbox_aside
    ADD CONSTRAINT forbear_outbox_aside_pkey PRIMARY KEY (tenant, id);


--
-- Name: forbear_outbox forbear_outbox_names_endpoint_or_application; Type: CHECK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE public.forbear_outbox
    ADD CONSTRAINT forbear_outbox_names_endpoint_or_application CHECK (((COALESCE(endpoint, ''::text) = ''::text) <> (COALESCE(application, ''::text) = ''::text))) NOT VALID;


--
-- Name: forbear_outbox forbear_outbox_not_before_is_in_microseconds; Type: CHECK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE public.forbear_outbox
    ADD CONSTRAINT forbear_outbox_not_before_is_in_microseconds CHECK (((not_before = 0) OR ((not_before >= '1000000000000000'::bigint) AND (not_before <= '253402300799999999'::bigint)))) NOT VALID;


--
-- Name: forbear_outbox forbear_outbox_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_outbox
    ADD CONSTRAINT forbear_outbox_pkey PRIMARY KEY (id);


--
-- Name: forbear_outbox_refused forbear_outbox_refused_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_outbox_refused
    ADD CONSTRAINT forbear_outbox_refused_pkey PRIMARY KEY (letter);


--
-- Name: forbear_sweeps forbear_sweeps_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_sweeps
    ADD CONSTRAINT forbear_sweeps_pkey PRIMARY KEY (name);


--
-- Name: forbear_tallies forbear_tallies_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_tallies
    ADD CONSTRAINT forbear_tallies_pkey PRIMARY KEY (endpoint, slot, owner);


--
-- Name: forbear_tokens forbear_tokens_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forbear_tokens
    ADD CONSTRAINT forbear_tokens_pkey PRIMARY KEY (name);


--
-- Name: forbear_alerts_due; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_alerts_due ON public.forbear_alerts USING btree (due) WHERE (state < 2);


--
-- Name: forbear_alerts_last; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_alerts_last ON public.forbear_alerts USING btree (queue, reason, id);


--
-- Name: forbear_alerts_open; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX forbear_alerts_open ON public.forbear_alerts USING btree (queue, reason) WHERE (state = 0);


--
-- Name: forbear_deliveries_active; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_deliveries_active ON public.forbear_deliveries USING btree (endpoint, okey) WHERE ((okey IS NOT NULL) AND (state = ANY (ARRAY[0, 1])));


--
-- Name: forbear_deliveries_cancel; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_deliveries_cancel ON public.forbear_deliveries USING btree (id) WHERE ((cancel IS NOT NULL) AND (state = 0));


--
-- Name: forbear_deliveries_due; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_deliveries_due ON public.forbear_deliveries USING btree (endpoint, due, start) WHERE (state = 0);


--
-- Name: forbear_deliveries_finished; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_deliveries_finished ON public.forbear_deliveries USING btree (finished) WHERE (finished IS NOT NULL);


--
-- Name: forbear_deliveries_identity; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX forbear_deliveries_identity ON public.forbear_deliveries USING btree (message_id, endpoint);


--
-- Name: forbear_deliveries_key; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_deliveries_key ON public.forbear_deliveries USING btree (endpoint, okey, id) WHERE ((okey IS NOT NULL) AND (state = ANY (ARRAY[0, 1, 4])));


--
-- Name: forbear_deliveries_lease; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_deliveries_lease ON public.forbear_deliveries USING btree (lease) WHERE (state = 1);


--
-- Name: forbear_deliveries_unreadable; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_deliveries_unreadable ON public.forbear_deliveries USING btree (endpoint) WHERE ((state = 0) AND (unreadable = fence));


--
-- Name: forbear_endpoints_application; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_endpoints_application ON public.forbear_endpoints USING btree (application) WHERE (application IS NOT NULL);


--
-- Name: forbear_endpoints_changed; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_endpoints_changed ON public.forbear_endpoints USING btree (changed);


--
-- Name: forbear_endpoints_deleted; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_endpoints_deleted ON public.forbear_endpoints USING btree (deleted) WHERE (deleted IS NOT NULL);


--
-- Name: forbear_holds_changed; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_holds_changed ON public.forbear_holds USING btree (changed);


--
-- Name: forbear_holds_expires; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_holds_expires ON public.forbear_holds USING btree (expires);


--
-- Name: forbear_idempotency_expires; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_idempotency_expires ON public.forbear_idempotency USING btree (expires) WHERE (state <> 4);


--
-- Name: forbear_idempotency_held; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_idempotency_held ON public.forbear_idempotency USING btree (scope, hash) WHERE (state = ANY (ARRAY[1, 4]));


--
-- Name: forbear_jobs_application; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_jobs_application ON public.forbear_jobs USING btree (application, created) WHERE (application IS NOT NULL);


--
-- Name: forbear_letters_application; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_letters_application ON public.forbear_letters USING btree (application, seq) WHERE (application IS NOT NULL);


--
-- Name: forbear_letters_dead; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_letters_dead ON public.forbear_letters USING btree (dead_at);


--
-- Name: forbear_letters_dest; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_letters_dest ON public.forbear_letters USING btree (substr(dest, 1, 64)) WHERE (state = 'dead'::text);


--
-- Name: forbear_letters_event; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_letters_event ON public.forbear_letters USING hash (event_id);


--
-- Name: forbear_letters_id; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX forbear_letters_id ON public.forbear_letters USING btree (id);


--
-- Name: forbear_letters_job; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_letters_job ON public.forbear_letters USING btree (job) WHERE (job IS NOT NULL);


--
-- Name: forbear_letters_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_letters_state ON public.forbear_letters USING btree (state, seq);


--
-- Name: forbear_tallies_slot; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forbear_tallies_slot ON public.forbear_tallies USING btree (slot);


--
-- Name: forbear_tokens_hash; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX forbear_tokens_hash ON public.forbear_tokens USING btree (hash);


--
-- PostgreSQL database dump complete
--

\unrestrict yHgkgKgSqwwMr4HqiJ0Ldzee4XkzipkkgdVilmdqmvTKmDvxWEpOylAcGZ808fk

