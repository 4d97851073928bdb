-- One row: the boot of the machine that used the file last, and the store's clock in it.
CREATE TABLE clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    boot TEXT NOT NULL,
    time_namespace TEXT NOT NULL,
    -- The store's clock less the time since that boot.
    ahead_ms INTEGER NOT NULL,
    -- No time that was written is later by more than a second.
    latest_ms INTEGER NOT NULL,
    -- Changes of the boot: each may have lost commits that were not durable.
    crashes INTEGER NOT NULL
) STRICT;
