-- The whole life of an order: payments that come late, returns, services and tables of the shop,
-- reconciliation, screens on the wall. Times are milliseconds since 1970 in UTC.

-- `asking` 1: its payment has started, the channel is asked before a timeout closes it.
ALTER TABLE orders ADD COLUMN asking SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE orders ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
-- The payment an order is RESTORING for.
ALTER TABLE orders ADD COLUMN late_payment BIGINT NULL;
DROP INDEX idx_orders_due ON orders;
CREATE INDEX idx_orders_due ON orders (asking, due_at);

-- `adopted` 0: a shop wrote the row and nobody has taken it over. `lane` 0: worked off here, set-wise; else the
-- number of the service that is called. `doubt` 1: sent without a certain answer, or being sent now.
ALTER TABLE order_release_task ADD COLUMN adopted SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE order_release_task ADD COLUMN lane SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE order_release_task ADD COLUMN doubt SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE order_release_task ADD COLUMN sent_at BIGINT NULL;
UPDATE order_release_task SET adopted = 1 WHERE ledger_id IS NOT NULL OR action <> 1;
DROP INDEX idx_task_open ON order_release_task;
CREATE INDEX idx_task_open ON order_release_task (lane, next_at, status, resource_type);

-- A channel transaction told again with another order, amount or currency: a case for a person.
CREATE TABLE payment_conflict (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    payment_id BIGINT NOT NULL,
    order_no VARCHAR(64) NOT NULL,
    amount BIGINT NOT NULL,
    currency VARCHAR(3) NOT NULL,
    told_at BIGINT NOT NULL,
    settled_at BIGINT NULL,
    settled_by VARCHAR(160) NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_conflict_payment ON payment_conflict (payment_id);

-- Parts of an open order that were given back early: (order, reference) counts once.
CREATE TABLE reduction (
    order_no VARCHAR(64) NOT NULL,
    ref VARCHAR(64) NOT NULL,
    amount BIGINT NOT NULL,
    body MEDIUMTEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (order_no, ref)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

-- status 0 accepted, 1 received. `tasked` 0: nobody has written its tasks yet; rows that another program
-- inserts, or sets to received, are found by it.
CREATE TABLE return_order (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    return_no VARCHAR(64) NOT NULL,
    order_no VARCHAR(64) NULL,
    status SMALLINT NOT NULL DEFAULT 0,
    tasked SMALLINT NOT NULL DEFAULT 0,
    content VARCHAR(64) NULL,
    raw MEDIUMTEXT NULL,
    origin VARCHAR(64) NULL,
    accepted_at BIGINT NULL,
    received_at BIGINT NULL,
    CONSTRAINT uk_return_no UNIQUE (return_no),
    CONSTRAINT return_status CHECK (status BETWEEN 0 AND 1)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_return_order ON return_order (order_no);
CREATE INDEX idx_return_untasked ON return_order (tasked, status);

CREATE TABLE return_item (
    return_no VARCHAR(64) NOT NULL,
    line INTEGER NOT NULL,
    biz_key VARCHAR(128) NOT NULL,
    qty BIGINT NOT NULL,
    restock SMALLINT NOT NULL DEFAULT 1,
    PRIMARY KEY (return_no, line),
    CONSTRAINT return_item_qty CHECK (qty > 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

-- How far a duty has read through a table that isn't ours.
CREATE TABLE reading (
    name VARCHAR(64) NOT NULL PRIMARY KEY,
    position VARCHAR(255) NOT NULL,
    at BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

-- status 0 running, 1 done, 2 failed. One runs at a time: `running` is 1 meanwhile, NULL after;
-- `seen_at` is its last sign of life, so that one whose process died blocks nobody.
CREATE TABLE reconcile_run (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    resource_type SMALLINT NULL,
    status SMALLINT NOT NULL DEFAULT 0,
    running SMALLINT NULL,
    started_by VARCHAR(160) NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    snapshot_at BIGINT NULL,
    finished_at BIGINT NULL,
    checked BIGINT NOT NULL DEFAULT 0,
    totals MEDIUMTEXT NULL,
    error MEDIUMTEXT NULL,
    CONSTRAINT uk_reconcile_running UNIQUE (running),
    CONSTRAINT reconcile_status CHECK (status BETWEEN 0 AND 2)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE reconcile_diff (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    run_id BIGINT NOT NULL,
    resource_type SMALLINT NOT NULL,
    biz_key VARCHAR(128) NOT NULL,
    class VARCHAR(32) NOT NULL,
    in_ledger BIGINT NOT NULL,
    expected BIGINT NOT NULL,
    explained BIGINT NOT NULL,
    unexplained BIGINT NOT NULL,
    orders MEDIUMTEXT NOT NULL,
    tasks MEDIUMTEXT NOT NULL,
    first_seen BIGINT NOT NULL,
    CONSTRAINT uk_diff_key UNIQUE (run_id, resource_type, biz_key)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_diff_key ON reconcile_diff (resource_type, biz_key);

-- A screen on the wall: opened once by a code, then known by its own cookie.
CREATE TABLE screen (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(64) NOT NULL,
    code_hash VARCHAR(64) NULL,
    code_expires_at BIGINT NULL,
    cookie_hash VARCHAR(64) NULL,
    created_at BIGINT NOT NULL,
    created_by VARCHAR(160) NOT NULL,
    seen_at BIGINT NULL,
    revoked_at BIGINT NULL,
    CONSTRAINT uk_screen_name UNIQUE (name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_screen_code ON screen (code_hash);
CREATE INDEX idx_screen_cookie ON screen (cookie_hash);
