-- Indexes of open rows only, on every engine: MySQL and MariaDB have no partial index, and with an equality in front
-- of the time, (asking, due_at), their optimizer may walk from the first NULL through every order ever closed.

-- Due orders: a range on a leading time has nothing to walk. Those whose channel is asked have a time of their own.
ALTER TABLE orders ADD COLUMN ask_at INTEGER GENERATED ALWAYS AS (CASE WHEN asking = 1 THEN due_at END) VIRTUAL;
DROP INDEX idx_orders_due;
CREATE INDEX idx_orders_due ON orders (due_at, asking) WHERE due_at IS NOT NULL;
CREATE INDEX idx_orders_ask ON orders (ask_at) WHERE ask_at IS NOT NULL;

-- Due tasks: the lane has to stand in front, so a finished task has no open lane. The table is built anew, because the
-- defaults of its times have to work in any SQLite that a shop writes with: unixepoch('subsec') came with 3.42, and
-- is NULL before. A view of the shop's over the table stays as it is: without the pragma, renaming would refuse it.
PRAGMA legacy_alter_table = ON;
DROP VIEW release_task_readable;
CREATE TABLE rebuilt (
    id INTEGER PRIMARY KEY,
    order_no VARCHAR(64) NOT NULL,
    return_no VARCHAR(64) NOT NULL DEFAULT '',
    ref_no VARCHAR(64) GENERATED ALWAYS AS (CASE WHEN return_no = '' THEN order_no ELSE return_no END) STORED,
    source VARCHAR(96) NOT NULL DEFAULT 'close',
    round INTEGER NOT NULL DEFAULT 1,
    action SMALLINT NOT NULL DEFAULT 1,
    resource_type SMALLINT NOT NULL,
    biz_key VARCHAR(128) NOT NULL,
    qty BIGINT NOT NULL,
    status SMALLINT NOT NULL DEFAULT 0,
    retry INTEGER NOT NULL DEFAULT 0,
    next_at BIGINT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
    created_at BIGINT NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
    ledger_id BIGINT NULL,
    fence BIGINT NOT NULL DEFAULT 0,
    claimed_by VARCHAR(160) NULL,
    version BIGINT NOT NULL DEFAULT 0,
    kind SMALLINT NULL,
    error TEXT NULL,
    outcome SMALLINT NULL,
    first_failed_at BIGINT NULL,
    finished_at BIGINT NULL,
    ended_by VARCHAR(160) NULL,
    adopted SMALLINT NOT NULL DEFAULT 0,
    lane SMALLINT NOT NULL DEFAULT 0,
    doubt SMALLINT NOT NULL DEFAULT 0,
    sent_at BIGINT NULL,
    open_lane INTEGER GENERATED ALWAYS AS (CASE WHEN next_at IS NULL THEN NULL ELSE lane END) VIRTUAL,
    CONSTRAINT uk_order_res UNIQUE (ref_no, source, round, action, resource_type, biz_key),
    CONSTRAINT task_type CHECK (resource_type BETWEEN 0 AND 5),
    CONSTRAINT task_action CHECK (action BETWEEN 1 AND 5),
    CONSTRAINT task_qty CHECK (qty BETWEEN 1 AND 1000000000000000),
    CONSTRAINT task_status CHECK (status BETWEEN 0 AND 5),
    CONSTRAINT task_open CHECK (status NOT IN (0, 2, 3) OR next_at IS NOT NULL),
    CONSTRAINT task_next_at_ms CHECK (next_at BETWEEN 1577836800000 AND 4102444800000),
    CONSTRAINT task_created_at_ms CHECK (created_at BETWEEN 1577836800000 AND 4102444800000),
    CONSTRAINT task_finished_at_ms CHECK (finished_at BETWEEN 1577836800000 AND 4102444800000)
);
INSERT INTO rebuilt (id, order_no, return_no, source, round, action, resource_type, biz_key, qty, status, retry, next_at, created_at, ledger_id, fence,
    claimed_by, version, kind, error, outcome, first_failed_at, finished_at, ended_by, adopted, lane, doubt, sent_at)
SELECT id, order_no, return_no, source, round, action, resource_type, biz_key, qty, status, retry, next_at, created_at, ledger_id, fence,
    claimed_by, version, kind, error, outcome, first_failed_at, finished_at, ended_by, adopted, lane, doubt, sent_at FROM order_release_task;
DROP TABLE order_release_task;
ALTER TABLE rebuilt RENAME TO order_release_task;
PRAGMA legacy_alter_table = OFF;
CREATE INDEX idx_task_open ON order_release_task (open_lane, next_at, status, resource_type) WHERE next_at IS NOT NULL;
CREATE VIEW release_task_readable AS SELECT
    id, order_no, ref_no, source, round,
    CASE action WHEN 1 THEN 'release' WHEN 2 THEN 'settle' WHEN 3 THEN 'take_back' WHEN 4 THEN 'return_in' WHEN 5 THEN 'refund' END AS action,
    CASE resource_type WHEN 0 THEN 'payment' WHEN 1 THEN 'stock' WHEN 2 THEN 'coupon' WHEN 3 THEN 'funds' WHEN 4 THEN 'quota' WHEN 5 THEN 'slot' END AS resource_type,
    biz_key, qty,
    CASE status WHEN 0 THEN 'waiting' WHEN 1 THEN 'succeeded' WHEN 2 THEN 'retrying' WHEN 3 THEN 'manual' WHEN 4 THEN 'force_closed' WHEN 5 THEN 'superseded' END AS status,
    retry,
    CASE WHEN next_at < 4102444800000 THEN strftime('%Y-%m-%d %H:%M:%f', next_at / 1000.0, 'unixepoch') END AS next_at,
    strftime('%Y-%m-%d %H:%M:%f', created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%d %H:%M:%f', finished_at / 1000.0, 'unixepoch') AS finished_at,
    CASE kind WHEN 1 THEN 'remote_timeout' WHEN 2 THEN 'remote_error' WHEN 3 THEN 'remote_busy' WHEN 4 THEN 'locked_insufficient' WHEN 5 THEN 'state_mismatch' WHEN 6 THEN 'resource_missing' WHEN 7 THEN 'rejected' WHEN 8 THEN 'database' WHEN 9 THEN 'poisoned' END AS kind,
    error, ended_by
FROM order_release_task;

-- A conflict is also shown on the page of the order that the second telling named.
CREATE INDEX idx_conflict_order ON payment_conflict (order_no);

-- Flow rows that name no ledger of ours are found by their key: those of the shop's tables.
ALTER TABLE resource_flow ADD COLUMN shops_key TEXT GENERATED ALWAYS AS (CASE WHEN ledger_id IS NULL THEN biz_key END) VIRTUAL;
CREATE INDEX idx_flow_shops ON resource_flow (shops_key) WHERE shops_key IS NOT NULL;
