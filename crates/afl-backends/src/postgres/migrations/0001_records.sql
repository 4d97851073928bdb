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
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05
);

CREATE INDEX records_by_bucket ON afl.records (tenant, bucket, rank, scope, id) WHERE bucket IS NOT NULL;

-- Writes all rows or none. i_ are inserted, u_ updated if their version is the expected one, g_ are those that do not
-- stay or do not change, by action: d delete, k keep, c claim (stay absent: it is among the inserted ones as well, so
-- that for a moment the row is there, and whoever inserts it at the same time waits for us). Keys come in their order,
-- in which every writer locks, so none waits for another in a circle.
CREATE FUNCTION afl.write(
    durable boolean,
    i_tenants text[], i_scopes text[], i_ids text[], i_versions bigint[], i_buckets text[], i_ranks bigint[],
    i_schemas bigint[], i_runtimes bigint[], i_checksums bigint[], i_bodies bytea[],
    u_tenants text[], u_scopes text[], u_ids text[], u_versions bigint[], u_buckets text[], u_ranks bigint[],
    u_schemas bigint[], u_runtimes bigint[], u_checksums bigint[], u_bodies bytea[], u_expected bigint[],
    g_tenants text[], g_scopes text[], g_ids text[], g_expected bigint[], g_actions text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found bigint;
BEGIN
    IF durable THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF g_ids <> '{}' THEN
        WITH locked AS MATERIALIZED (
            SELECT r.version = e.expected AS same
            FROM unnest(u_tenants || g_tenants, u_scopes || g_scopes, u_ids || g_ids, u_expected || g_expected)
                AS e(tenant, scope, id, expected)
            JOIN afl.records r ON r.tenant = e.tenant AND r.scope = e.scope AND r.id = e.id
            WHERE e.expected IS NOT NULL
            ORDER BY r.tenant, r.scope, r.id
            FOR UPDATE OF r
        )
        SELECT count(*) FILTER (WHERE same) INTO found FROM locked;
        IF found <> cardinality(u_ids) + cardinality(g_ids) - cardinality(array_positions(g_actions, 'c')) THEN
            RAISE EXCEPTION USING ERRCODE = 'AFL01', MESSAGE = 'another writer was first';
        END IF;
    END IF;
    IF u_ids <> '{}' THEN
        -- Columns of sets and not a function scan, which would keep a copy of all rows.
        UPDATE afl.records r
        SET version = n.version, bucket = n.bucket, rank = n.rank,
            schema = n.schema, runtime = n.runtime, checksum = n.checksum, body = n.body
        FROM (
            SELECT unnest(u_tenants) AS tenant, unnest(u_scopes) AS scope, unnest(u_ids) AS id,
                unnest(u_versions) AS version, unnest(u_buckets) AS bucket, unnest(u_ranks) AS rank,
                unnest(u_schemas) AS schema, unnest(u_runtimes) AS runtime, unnest(u_checksums) AS checksum,
                unnest(u_bodies) AS body, unnest(u_expected) AS expected
        ) AS n
        WHERE r.tenant = n.tenant AND r.scope = n.scope AND r.id = n.id AND r.version = n.expected;
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found <> cardinality(u_ids) THEN
            RAISE EXCEPTION USING ERRCODE = 'AFL01', MESSAGE = 'another writer was first';
        END IF;
    END IF;
    IF i_ids <> '{}' THEN
        INSERT INTO afl.records (tenant, scope, id, version, bucket, rank, schema, runtime, checksum, body)
        SELECT unnest(i_tenants), unnest(i_scopes), unnest(i_ids), unnest(i_versions), unnest(i_buckets),
            unnest(i_ranks), unnest(i_schemas), unnest(i_runtimes), unnest(i_checksums), unnest(i_bodies);
    END IF;
    IF g_actions && '{d,c}' THEN
        DELETE FROM afl.records r
        USING unnest(g_tenants, g_scopes, g_ids, g_actions) AS g(tenant, scope, id, action)
        WHERE g.action IN ('d', 'c') AND r.tenant = g.tenant AND r.scope = g.scope AND r.id = g.id;
    END IF;
    IF durable AND i_ids = '{}' AND u_ids = '{}' THEN
        -- What has nothing to write would not wait for the disk, and the commits before it must be there.
        PERFORM pg_logical_emit_message(true, 'afl', '');
    END IF;
END
$$;

-- A body to look into. jsonb has no place for U+0000, so it shows as U+FFFD.
CREATE FUNCTION afl.json(body bytea) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT regexp_replace(convert_from(body, 'UTF8'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::jsonb
$$;
