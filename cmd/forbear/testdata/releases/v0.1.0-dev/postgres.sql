--
-- PostgreSQL database dump
--

\restrict BCceqS4f50WXrIbKsyl0MxUjgBRl1CvB0DMdxR5Wzm50ZecXepS7z37TR2a26eX

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
1	webhooks	terminal	0	1	1795791415414854	1795791415414856	1795791415414861	dlq_06h1v0k8c8gagbfbwqwt4jr9k0	terminal (http_400) after 1 attempt	{}
\.


--
-- Data for Name: forbear_applications; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_applications (id, spec, version, created, suspended, reason) FROM stdin;
shop	sealed:CGEwM2Q0ZDQ0aUr4926bKT3KrQjT6LZtlwS2XBPhwVf4FRQ+soEdyzcihohfxcQSDrHdN7CAwvdqQy7gFn0=	1	1795791415343920	\N	
\.


--
-- Data for Name: forbear_attempts; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_attempts (delivery, claim, n, due, at, took, wait, error_type, status, worker, response, cause) FROM stdin;
1	1	1	1795791415376588	1795791415389334	983	0		200	vm-14283-p1x3aw50	\N	\N
2	1	1	1795791415390374	1795791415394204	282	0	http_400	400	vm-14283-p1x3aw50	\N	sealed:CGEwM2Q0ZDQ0m3TxiL9rJVlaBtDgvxGOOGx005uZpWHUjDk2foy16lvCB/cQ4gbCnch4lPcS9MGKhIRfD6XTR83mp3l+jpM6CaGXfoWlq3ouAe8dhi4hMhcbYtmzkYVtIDrV3lr7rRA3+V7pzsYUpvz4yY17JgnLNLIclyjq3mpV
3	1	1	1795791415395560	1795791415410697	365	887047	http_503	503	vm-14283-p1x3aw50	\N	sealed:CGEwM2Q0ZDQ0Vv/00JaB8V3KDYx/T4g/TXyYELhq9Hb6ar51neql9YG9TE1tQWnLA4AJTsuNHX10dWRWPfifWaN5VkYYZZfapEyoHPDHpFe4jSWLnVIfiF5C2h9qqk0WcUZ0LF+bFqvnnb3gAaMRBdzvtfKt52gL+aJ+9+eO5kH57N+neIg3dkyP
\.


--
-- Data for Name: forbear_audit; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_audit (id, at, who, action, target, detail) FROM stdin;
1	1795791415347688	anonymous at 127.0.0.1	application-put	shop	version 1
2	1795791415361639	anonymous at 127.0.0.1	endpoint-put	well	version 1
3	1795791415369126	anonymous at 127.0.0.1	endpoint-put	refuses	version 1
4	1795791415373386	anonymous at 127.0.0.1	endpoint-put	down	version 1
5	1795791415432382	anonymous at 127.0.0.1	message-cancel	canceled	endpoint well
6	1795791415448843	anonymous at 127.0.0.1	endpoint-disable	down	
7	1795791415470915	anonymous at 127.0.0.1	endpoint-disable	well	
8	1795791415521195	root	token-create	ops	admin , until 2028-10-27T14:56:55Z
\.


--
-- Data for Name: forbear_deliveries; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_deliveries (id, message, endpoint, okey, state, due, start, progress, fence, claims, owner, lease, letter, finished, message_id, cancel, unreadable) FROM stdin;
1	1	well	\N	2	1795791415376588	1795791415376615	\N	1	1	vm-14283-p1x3aw50	\N	\N	1795791415402989	done	\N	\N
2	2	refuses	\N	3	1795791415390374	1795791415390396	{"attempts":1,"state":{"attempt":1,"start":"2026-11-27T14:56:55.390396Z","needs_key":true},"last":"http_400"}	1	1	vm-14283-p1x3aw50	\N	\N	1795791415410980	dead	\N	\N
4	4	down	k	4	1795791415411298	1795791415411300	\N	0	0	\N	\N	\N	\N	behind	\N	\N
5	5	well	\N	0	1796223415000579	1796223415000581	\N	0	0	\N	\N	\N	\N	later	\N	\N
3	3	down	k	0	1795791416301242	1795791415395565	{"attempts":1,"state":{"attempt":2,"start":"2026-11-27T14:56:55.395565Z","prev_wait":887047291,"needs_key":true},"last":"http_503"}	1	1	vm-14283-p1x3aw50	\N	\N	\N	waits	\N	\N
6	6	well	\N	5	1796223415001168	1796223415001171	\N	0	0	\N	\N	\N	1795791415429547	canceled	\N	\N
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
refuses	sealed:CGEwM2Q0ZDQ0jtpN3/LsVSFfOc0mQogLwKjuFMlChkhWATQ4N1UfjyeQm9rTX7HtozSNrpHVtYSsskS0p/omYCJBUfEQ6HmyuE/ItZMEW4ch9qibsMDKmkBDXh2x/xjrSzP4JIXaetGj3x3f4HkauIMWNER4m8pmhMK2naof9b2NrUT2vbRQpnNQhcLJFzdcioO+meMAaR8ix4l9JKGD1ucKWPYczfvYpZaqoRSv5kQUZDVMMVMBT22GdDvATfejq9o/DxeWaLN0OeFDEUnK806EyG+oVMTcnlHx2AxjloubytoTEOtRDM4LA5zHB8cjzHU4mJkBjdunThP5Bw8xEls/qi/6lVI4yYzzXS0Fr7oFDBtK	enabled		1795791415367202	1795791415394486	1	2	\N	shop	
down	sealed:CGEwM2Q0ZDQ0qPn2ZgwrQQb0SaSfeFedxIHP6fcueJPy0Yz9+lFv69oq7MvN817zb1BXrrX+T+Y5yrvWYxx441KbjrATr4X4RlqaLMm3AawqoeagR7jsjHsbcySDmNw5Rd98aBWMD+4Yl48vrI1P3eI2wwK6WSLEg3HyTrP5C1fM7IHrUc8tkp+WDGUnPyrRsxT455yU9IRKAR++f44KGAm0RhH9Uu1h4dlvkHfGQL1YSBBimSrvDWvYwQgLW9uR6I6fm6tOLuEOQMb/QGhwDZCzcV2a4i7+Axtpj9xSmEIElU5WsX8LqdMsb0yoSQVLILYNr0sIkZzAIQ7zxKPjFN+lDH8ZOtmpyC5yn+rF	disabled	disabled by anonymous at 127.0.0.1	1795791415441836	\N	1	4	\N	shop	operator
well	sealed:CGEwM2Q0ZDQ09m7qILPlL2RID5mi/Cwn+IjeicyCjinIiRZ/Jn5MrXY8aOy2RpVjQdbCoNw1YbWf22MeTu2Znd5Oxh/WfPVSZeUYxmTbHjfuH+wQF1oMXoUykXvfmj8jiFcPoXiHgudfOuH8ne82R8/+YGxoXNsaobBz8ne1Bx/E4nLo357+qBWMOH+G/nUtsqS2BdwVBYKMWqa/uQlezButmvMvyaoQrWKQTZhaz6QjSUp1s7WIoYm90vkNaOICQH7aYtVGtdDGcjNBvZcD/KC4KY+ynTdbwtESlDYXEVvg3IMs8XLzKYxRB8w2ilrFprprjjenHaZR1BQvNueRDJkH5oHy2OQbZXRvH6fz	disabled	disabled by anonymous at 127.0.0.1	1795791415469086	\N	1	5	\N	shop	operator
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
all	-NlLF89rfVva-tR6mzIAlilwWPUnD8cGHNu2NAykKb4	4UeXpXRdC-WhYiQTuGH3FrBG3Nh3p6Mv6Ob9ik0IejI	POST /pay	2	0	ZASEVMF5VZSDGZUZPY6PTN4N6I	1	1	1795791445473854	1795791415473859	1795791415477077	1795964215477082	200	sealed:CGEwM2Q0ZDQ0+y+1IuNqV/C9hH9+efFifosL4r9TDNNv9+Jlea+a4vyEES3aZfMrhhlonFsZNb3hsY8kH35nSORBRgDasbkzRPSLwdXX1BRq+gI=	\\x0861303364346434345ffbd45d7278102e475ba600431ab5ec701f83a933a1beb5066517cf43c195f81642		
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
1	dlq_06h1v0k8c8gagbfbwqwt4jr9k0	webhooks	refuses	dead	terminal	http_400	dead	1795791415413370	0	\N	\N	\N		\N	{"id":"dlq_06h1v0k8c8gagbfbwqwt4jr9k0","queue":"webhooks","destination":"refuses","application":"shop","event_id":"dead","idempotency_key":"dead","correlation_id":"dead","policy":{"kind":"webhook"},"policy_version":"v1-e2ab7eff","reason":"terminal","error_type":"http_400","status":400,"description":"terminal (http_400) after 1 attempt","error":"http status 400 Bad Request","error_chain":["httpretry.StatusError"],"cause":"378af25da026","attempts":1,"max_attempts":5,"attempt_history":[{"attempt":1,"claim":1,"due":"2026-11-27T14:56:55.390374Z","at":"2026-11-27T14:56:55.394204Z","took_ns":282000,"error_type":"http_400","status":400,"error_class":"terminal","error":"http status 400 Bad Request","error_chain":["httpretry.StatusError"],"worker":"vm-14283-p1x3aw50"}],"enqueued_at":"2026-11-27T14:56:55.385278Z","first_attempt_at":"2026-11-27T14:56:55.394204Z","last_attempt_at":"2026-11-27T14:56:55.394204Z","dead_lettered_at":"2026-11-27T14:56:55.394582543Z","state":"dead"}	\\x086130336434643434b70e6b17aad495f5d37f358a53b8a81c5850e5bbb2c18a958e300c058cd3a70833d08830e4c4e86b35bbfa8c7a5e6226e0b63d7bc716ea87c576ffc1dea0e2627239afda31a27fc6fb94da64a2243da0280a8bbd9aa5d11e98ebb7008ac7fb0a5d54bcd6ac0aaad75e65eaad9e26c1815c8c25	378af25da026	shop
\.


--
-- Data for Name: forbear_messages; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_messages (seq, meta, body, created, dropped) FROM stdin;
1		\\x0861303364346434346abe5c6e4dbb622d3e9be724ed85b3e95119b70e92f12d0c4bf4b1719d1e8cfde4064765e63d4e92f2	1795791415374868	\N
2		\\x086130336434643434ea5c6a6f5e9bc116a4a57854ddc0203cd2fbd4da43855b2dbabdbf432b69e2217c9a82dcacd331feba	1795791415385278	\N
3	sealed:CGEwM2Q0ZDQ08cG/u41N0j0iFiC9nbml5E6hyQ8aee0lt6ciYXITHmb70Cc0B2kv	\\x086130336434643434bd419ff4ac7dd06e64129d855460a69908363afdb9bb8fb4cd593a13794ffa99d5b6934f9e8b4341673e	1795791415391408	\N
4	sealed:CGEwM2Q0ZDQ0I3/WFDaHCLvkNqgxnJtDYUJmBFCNvwB76N+oJVAE1rrR+B7f9r9e	\\x086130336434643434ef991b404a66dbf63b46cf019df0566f89af76bcec3b18baf847bbedd9567d43ab940cb183f345c060c68f	1795791415408823	\N
5	sealed:CGEwM2Q0ZDQ04pjnScpvNIavW2xyNa24mtYsAdoSLaZ0gEV74drVNy26s4WCilygLU/tKVCyhJm3PD2Q8S6yiZU9UaAO1QfEmnY=	\\x0861303364346434340bf82ef0813cc3a22e3cee2dabacc3175c5a70e3f0db4e258a946ad905f27b4e03aca5f2ba04d5cea5b8	1795791415412384	\N
6	sealed:CGEwM2Q0ZDQ0xxg7vJjE9MZb3M/7aGXUaXGmW5TzQ3M0km5bb7ICAULTky7DR03cy2Nv8cVi7zb9E7KcPm5HEZnto9SacjzH1C8=	\\x0861303364346434343b5f1fc82c558299e02bcb1f0343dae2e1c1a55c957ba9b417cdc1b8efeb8f38bb8eab8e4f9011e729b6f81e22	1795791415416841	\N
\.


--
-- Data for Name: forbear_migrations; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_migrations (version, name, applied) FROM stdin;
1	delivery	1795791415068582
10	idempotency	1795791415082375
20	identity	1795791415105975
30	cause	1795791415106637
35	endpoint_changes	1795791415144326
40	applications	1795791415180974
50	messages	1795791415199612
51	stats	1795791415221524
60	vacuum	1795791415222311
70	retention	1795791415232291
71	dispatchers	1795791415244316
80	outbox_application	1795791415247312
81	send	1795791415252389
100	suspension	1795791415264325
101	disabled_by	1795791415264850
102	application_of_letters	1795791415269626
120	holds	1795791415289652
140	unreadable	1795791415300446
\.


--
-- Data for Name: forbear_outbox; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_outbox (id, message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, not_before, body, created, application) FROM stdin;
1	row	well	order.made	\N	\N	\N	\N	\N	application/json	\N	\N	\\x7b226f66223a22726f77227d	1795791415549494	\N
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
down	2992985	vm-14283-p1x3aw50	{"r":[0,0,0,0,0,1],"l":[1,0,0,0,0,0,0,0,0,0],"t":365401,"m":365401}
well	2992985	vm-14283-p1x3aw50	{"r":[0,0,1,0,0,0],"l":[1,0,0,0,0,0,0,0,0,0],"t":983356,"m":983356}
refuses	2992985	vm-14283-p1x3aw50	{"r":[0,0,0,0,1,0],"l":[1,0,0,0,0,0,0,0,0,0],"t":282188,"m":282188}
\.


--
-- Data for Name: forbear_tokens; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.forbear_tokens (name, hash, scope, application, created, creator, expires) FROM stdin;
ops	ec0c8d3922baa5575a76c44d6428b8624abf21d0e0ab439aeedd929719eeaa6e	admin		1795791415520334	root	1856271415520383
\.


--
-- Name: forbear_alerts_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.forbear_alerts_id_seq', 1, true);


--
-- Name: forbear_audit_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.forbear_audit_id_seq', 8, true);


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

\unrestrict BCceqS4f50WXrIbKsyl0MxUjgBRl1CvB0DMdxR5Wzm50ZecXepS7z37TR2a26eX

