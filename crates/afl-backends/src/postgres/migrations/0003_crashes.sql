-- How often the server crashed, and so may have lost commits that were not durable.
CREATE TABLE afl.crashes (count bigint NOT NULL);
INSERT INTO afl.crashes VALUES (0);

-- The count since the last start of the server. A crash empties an unlogged table, and a stop in order does not.
CREATE UNLOGGED TABLE afl.incarnation (crashes bigint NOT NULL);
INSERT INTO afl.incarnation VALUES (0);

-- Counts a crash if none has counted it yet, and returns the count. The transaction that counts is durable, and no other
-- sees its count before it is on the disk.
CREATE FUNCTION afl.count_crash() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'on', true);
    LOCK TABLE afl.crashes IN EXCLUSIVE MODE;
    IF NOT EXISTS (SELECT FROM afl.incarnation) THEN
        UPDATE afl.crashes SET count = count + 1;
        INSERT INTO afl.incarnation SELECT count FROM afl.crashes;
    END IF;
    RETURN (SELECT crashes FROM afl.incarnation);
END
$$;
