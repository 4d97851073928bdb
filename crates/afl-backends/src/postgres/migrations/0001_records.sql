-- Ids sort as bytes, whatever the database's own order is.
CREATE TABLE afl.records (
    tenant   text   COLLATE "C" NOT NULL,
    scope    text   COLLATE "C" NOT NULL,
    id       text   COLLATE "C" NOT NULL,
    version  bigint NOT NULL,
    bucket   text   COLLATE "C",
    rank     bigint,
    schema   bigint NOT NULL,
    runtime  bigint NOT NULL,
    checksum bigint NOT NULL,
    -- JSON text, see afl.json; as bytes, so that what is damaged can still be read and reported.
    body     bytea  NOT NULL,
    PRIMARY KEY (tenant, scope, id),
    CHECK ((bucket IS NULL) = (rank IS NULL))
) WITH (
    -- Room for a record's next version beside it, and frequent cleaning: queues change all the time.
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05
);

CREATE INDEX records_by_bucket ON afl.records (tenant, bucket, rank, scope, id) WHERE bucket IS NOT NULL;

-- Writes all rows or none. Keys come in their order, in which every writer locks, so none waits for another in a circle.
-- Actions: i insert, u update, d delete, k keep, c claim (stay absent: for a moment the row is there, so that whoever
-- inserts it at the same time waits for us).
CREATE FUNCTION afl.write(
    actions text[], tenants text[], scopes text[], ids text[], expected bigint[],
    versions bigint[], buckets text[], ranks bigint[], schemas bigint[], runtimes bigint[], checksums bigint[], bodies bytea[],
    synchronous text, notices text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted bigint := cardinality(array_positions(actions, 'u')) + cardinality(array_positions(actions, 'd'))
        + cardinality(array_positions(actions, 'k'));
    found bigint := 0;
BEGIN
    PERFORM set_config('synchronous_commit', synchronous, true);
    IF wanted > 0 THEN
        WITH locked AS MATERIALIZED (
            SELECT r.version = e.expected AS same
            FROM unnest(actions, tenants, scopes, ids, expected) AS e(action, tenant, scope, id, expected)
            JOIN afl.records r ON r.tenant = e.tenant AND r.scope = e.scope AND r.id = e.id
            WHERE e.action IN ('u', 'd', 'k')
            ORDER BY r.tenant, r.scope, r.id
            FOR UPDATE OF r
        )
        SELECT count(*) FILTER (WHERE same) INTO found FROM locked;
        IF found <> wanted THEN
            RAISE EXCEPTION USING ERRCODE = 'AFL01', MESSAGE = 'another writer was first';
        END IF;
    END IF;
    IF actions && '{i,c}' THEN
        INSERT INTO afl.records (tenant, scope, id, version, bucket, rank, schema, runtime, checksum, body)
        SELECT n.tenant, n.scope, n.id, n.version, n.bucket, n.rank, n.schema, n.runtime, n.checksum, n.body
        FROM unnest(actions, tenants, scopes, ids, versions, buckets, ranks, schemas, runtimes, checksums, bodies)
            AS n(action, tenant, scope, id, version, bucket, rank, schema, runtime, checksum, body)
        WHERE n.action IN ('i', 'c');
    END IF;
    IF 'u' = ANY(actions) THEN
        UPDATE afl.records r
        SET version = n.version, bucket = n.bucket, rank = n.rank,
            schema = n.schema, runtime = n.runtime, checksum = n.checksum, body = n.body
        FROM unnest(actions, tenants, scopes, ids, versions, buckets, ranks, schemas, runtimes, checksums, bodies)
            AS n(action, tenant, scope, id, version, bucket, rank, schema, runtime, checksum, body)
        WHERE n.action = 'u' AND r.tenant = n.tenant AND r.scope = n.scope AND r.id = n.id;
    END IF;
    IF actions && '{d,c}' THEN
        DELETE FROM afl.records r
        USING unnest(actions, tenants, scopes, ids) AS n(action, tenant, scope, id)
        WHERE n.action IN ('d', 'c') AND r.tenant = n.tenant AND r.scope = n.scope AND r.id = n.id;
    END IF;
    IF synchronous = 'on' AND NOT actions && '{i,u,d,c}' THEN
        -- What has nothing to write would not wait for the disk, and the commits before it must be there.
        PERFORM pg_logical_emit_message(true, 'afl', '');
    END IF;
    PERFORM pg_notify('afl', notice) FROM unnest(notices) AS notice;
END
$$;

-- A body to look into. jsonb has no place for U+0000, so it shows as U+FFFD.
CREATE FUNCTION afl.json(body bytea) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT regexp_replace(convert_from(body, 'UTF8'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::jsonb
$$;
