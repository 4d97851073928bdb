-- For people, who look with any tool; the program reads none of them.

-- What a damaged body shows is nothing, so that the rest can still be looked at.
CREATE FUNCTION afl.shown(body bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN afl.json(body);
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

CREATE FUNCTION afl.moment(ms jsonb) RETURNS timestamptz LANGUAGE sql STABLE STRICT AS $$
    SELECT to_timestamp(ms::numeric / 1000.0)
$$;

CREATE VIEW afl.runs AS
SELECT r.tenant, r.scope AS run, j ->> 'workflow' AS workflow, j ->> 'status' AS status, j ->> 'control' AS control,
    afl.moment(j -> 'created') AS created, afl.moment(j -> 'updated') AS updated, afl.moment(j -> 'ended') AS ended,
    (j #>> '{counts,steps}')::bigint AS steps, (j #>> '{counts,complete}')::bigint AS complete,
    (j #>> '{counts,failed}')::bigint AS failed, (j #>> '{counts,waiting}')::bigint AS waiting,
    j #>> '{error,path}' AS error_path, j #>> '{error,message}' AS error,
    j -> 'labels' AS labels, j ->> 'workflow_version' AS program
FROM afl.records r, LATERAL (SELECT afl.shown(r.body) AS j OFFSET 0) AS body
WHERE r.id = 'run' AND r.scope NOT LIKE '@%';

CREATE VIEW afl.steps AS
SELECT r.tenant, r.scope AS run, substr(r.id, 3) AS step, j ->> 'statement_id' AS statement, j ->> 'facet_name' AS facet,
    j ->> 'object_type' AS object_type, j ->> 'state' AS state,
    afl.moment(j -> 'created') AS created, afl.moment(j -> 'ended') AS ended,
    j #>> '{error,path}' AS error_path, j #>> '{error,message}' AS error, j -> 'attributes' AS attributes
FROM afl.records r, LATERAL (SELECT afl.shown(r.body) AS j OFFSET 0) AS body
WHERE r.id LIKE 's/%' AND r.scope NOT LIKE '@%';

CREATE VIEW afl.tasks AS
SELECT r.tenant, r.scope AS run, substr(r.id, 3) AS step, j ->> 'path' AS path, j ->> 'name' AS name,
    j ->> 'task_list_name' AS list, j ->> 'state' AS state,
    (j ->> 'attempts')::bigint AS attempts, (j ->> 'deliveries')::bigint AS deliveries,
    j #>> '{lease,owner}' AS owner, afl.moment(j #> '{lease,expires}') AS lease_expires,
    afl.moment(j -> 'not_before') AS not_before, afl.moment(j -> 'created') AS created,
    afl.moment(j -> 'updated') AS updated, afl.moment(j -> 'started') AS started, afl.moment(j -> 'ended') AS ended,
    j ->> 'error' AS error
FROM afl.records r, LATERAL (SELECT afl.shown(r.body) AS j OFFSET 0) AS body
WHERE r.id LIKE 't/%' AND r.scope NOT LIKE '@%';

-- An event that is not settled stands where its task does.
CREATE VIEW afl.events AS
SELECT r.tenant, r.scope AS run, substr(r.id, 3) AS step, j ->> 'event_type' AS event_type,
    CASE
        WHEN j ->> 'state' IN ('event.Completed', 'event.Error') THEN j ->> 'state'
        WHEN t.state = 'pending' THEN 'event.Dispatched'
        WHEN t.state IN ('running', 'awaiting_response') THEN 'event.Processing'
        WHEN t.state IN ('completed', 'ignored') THEN 'event.Completed'
        WHEN t.state IN ('failed', 'canceled') THEN 'event.Error'
        ELSE j ->> 'state'
    END AS state,
    j ->> 'reception' AS reception, j -> 'payload' AS payload, j -> 'result' AS result,
    j #>> '{error,kind}' AS error_kind, j #>> '{error,message}' AS error
FROM afl.records r
CROSS JOIN LATERAL (SELECT afl.shown(r.body) AS j OFFSET 0) AS body
LEFT JOIN LATERAL (
    SELECT afl.shown(o.body) ->> 'state' AS state FROM afl.records o
    WHERE o.tenant = r.tenant AND o.scope = r.scope AND o.id = 't/' || substr(r.id, 3)
) AS t ON true
WHERE r.id LIKE 'e/%' AND r.scope NOT LIKE '@%';
