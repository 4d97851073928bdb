-- For people, who look with any SQLite tool; the program reads none of them. A body that is no JSON shows as nulls.
-- Times are UTC.

CREATE VIEW runs AS
SELECT tenant, run, body ->> 'workflow' AS workflow, body ->> 'status' AS status, body ->> 'control' AS control,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'created') / 1000.0, 'unixepoch') AS created,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'updated') / 1000.0, 'unixepoch') AS updated,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'ended') / 1000.0, 'unixepoch') AS ended,
    body ->> '$.counts.steps' AS steps, body ->> '$.counts.complete' AS complete, body ->> '$.counts.failed' AS failed,
    body ->> '$.counts.waiting' AS waiting, body ->> '$.error.path' AS error_path, body ->> '$.error.message' AS error,
    body ->> 'labels' AS labels, body ->> 'workflow_version' AS program
FROM (
    SELECT tenant, scope AS run, CASE WHEN json_valid(body) THEN body END AS body
    FROM records WHERE id = 'run' AND scope NOT LIKE '@%'
);

CREATE VIEW steps AS
SELECT tenant, run, step, body ->> 'statement_id' AS statement, body ->> 'facet_name' AS facet,
    body ->> 'object_type' AS object_type, body ->> 'state' AS state,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'created') / 1000.0, 'unixepoch') AS created,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'ended') / 1000.0, 'unixepoch') AS ended,
    body ->> '$.error.path' AS error_path, body ->> '$.error.message' AS error, body ->> '$.attributes' AS attributes
FROM (
    SELECT tenant, scope AS run, substr(id, 3) AS step, CASE WHEN json_valid(body) THEN body END AS body
    FROM records WHERE id LIKE 's/%' AND scope NOT LIKE '@%'
);

CREATE VIEW tasks AS
SELECT tenant, run, step, body ->> 'path' AS path, body ->> 'name' AS name, body ->> 'task_list_name' AS list,
    body ->> 'state' AS state, body ->> 'attempts' AS attempts, body ->> 'deliveries' AS deliveries,
    body ->> '$.lease.owner' AS owner,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> '$.lease.expires') / 1000.0, 'unixepoch') AS lease_expires,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'not_before') / 1000.0, 'unixepoch') AS not_before,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'created') / 1000.0, 'unixepoch') AS created,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'updated') / 1000.0, 'unixepoch') AS updated,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'started') / 1000.0, 'unixepoch') AS started,
    strftime('%Y-%m-%dT%H:%M:%fZ', (body ->> 'ended') / 1000.0, 'unixepoch') AS ended,
    body ->> 'error' AS error
FROM (
    SELECT tenant, scope AS run, substr(id, 3) AS step, CASE WHEN json_valid(body) THEN body END AS body
    FROM records WHERE id LIKE 't/%' AND scope NOT LIKE '@%'
);

-- An event that is not settled stands where its task does.
CREATE VIEW events AS
SELECT e.tenant, e.run, e.step, e.body ->> 'event_type' AS event_type,
    CASE
        WHEN e.body ->> 'state' IN ('event.Completed', 'event.Error') THEN e.body ->> 'state'
        WHEN t.body ->> 'state' = 'pending' THEN 'event.Dispatched'
        WHEN t.body ->> 'state' IN ('running', 'awaiting_response') THEN 'event.Processing'
        WHEN t.body ->> 'state' IN ('completed', 'ignored') THEN 'event.Completed'
        WHEN t.body ->> 'state' IN ('failed', 'canceled') THEN 'event.Error'
        ELSE e.body ->> 'state'
    END AS state,
    e.body ->> 'reception' AS reception, e.body ->> '$.payload' AS payload, e.body ->> '$.result' AS result,
    e.body ->> '$.error.kind' AS error_kind, e.body ->> '$.error.message' AS error
FROM (
    SELECT tenant, scope AS run, substr(id, 3) AS step, CASE WHEN json_valid(body) THEN body END AS body
    FROM records WHERE id LIKE 'e/%' AND scope NOT LIKE '@%'
) AS e
LEFT JOIN (
    SELECT tenant, scope AS run, id, CASE WHEN json_valid(body) THEN body END AS body
    FROM records
) AS t ON t.tenant = e.tenant AND t.run = e.run AND t.id = 't/' || e.step;
