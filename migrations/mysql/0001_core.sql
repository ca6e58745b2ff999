-- Handback's tables. The same tables, columns, keys and checks stand in the files of the other two engines;
-- a test compares them. Times are milliseconds since 1970 in UTC; the checks make NOW() and plain seconds fail.
-- {{bin}} is the server's binary collation without padding (it has another name on MariaDB and MySQL).

CREATE TABLE orders (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    order_no VARCHAR(64) NOT NULL,
    buyer VARCHAR(128) NOT NULL,
    amount BIGINT NOT NULL,
    currency VARCHAR(3) NOT NULL,
    status SMALLINT NOT NULL DEFAULT 0,
    round INTEGER NOT NULL DEFAULT 1,
    content VARCHAR(64) NOT NULL,
    pay_within_s BIGINT NOT NULL,
    placed_at BIGINT NOT NULL,
    pay_deadline BIGINT NOT NULL,
    due_at BIGINT NULL,
    paid_at BIGINT NULL,
    closed_at BIGINT NULL,
    close_reason VARCHAR(500) NULL,
    closed_by VARCHAR(160) NULL,
    close_trigger SMALLINT NULL,
    payment_seen SMALLINT NOT NULL DEFAULT 0,
    tombstone_until BIGINT NULL,
    postponed INTEGER NOT NULL DEFAULT 0,
    line_items MEDIUMTEXT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT uk_orders_no UNIQUE (order_no),
    CONSTRAINT orders_status CHECK (status BETWEEN 0 AND 6),
    CONSTRAINT orders_amount CHECK (amount >= 0),
    CONSTRAINT orders_due CHECK (due_at IS NULL OR status = 0),
    CONSTRAINT orders_placed_at_ms CHECK (placed_at BETWEEN 1577836800000 AND 4102444800000),
    CONSTRAINT orders_pay_deadline_ms CHECK (pay_deadline BETWEEN 1577836800000 AND 4102444800000)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_orders_due ON orders (due_at);
CREATE INDEX idx_orders_tombstone ON orders (tombstone_until);

CREATE TABLE ledger (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    resource_type SMALLINT NOT NULL,
    biz_key VARCHAR(128) NOT NULL,
    generation BIGINT NOT NULL DEFAULT 0,
    available BIGINT NOT NULL,
    locked BIGINT NOT NULL DEFAULT 0,
    sold BIGINT NOT NULL DEFAULT 0,
    kind SMALLINT NULL,
    owner VARCHAR(128) NULL,
    issuer VARCHAR(128) NULL,
    holder_no VARCHAR(64) NULL,
    holder_round INTEGER NULL,
    expires_at BIGINT NULL,
    original_expires_at BIGINT NULL,
    extended_by VARCHAR(64) NULL,
    retired_at BIGINT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT uk_ledger_key UNIQUE (resource_type, biz_key, generation),
    CONSTRAINT ledger_type CHECK (resource_type BETWEEN 1 AND 5),
    CONSTRAINT ledger_figures CHECK (available >= 0 AND locked >= 0 AND sold >= 0),
    CONSTRAINT ledger_single CHECK (resource_type NOT IN (2, 5) OR available + locked + sold = 1),
    CONSTRAINT ledger_created_at_ms CHECK (created_at BETWEEN 1577836800000 AND 4102444800000)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE hold (
    order_no VARCHAR(64) NOT NULL,
    round INTEGER NOT NULL,
    resource_type SMALLINT NOT NULL,
    biz_key VARCHAR(128) NOT NULL,
    ledger_id BIGINT NULL,
    locked BIGINT NOT NULL,
    PRIMARY KEY (order_no, round, resource_type, biz_key),
    CONSTRAINT hold_locked CHECK (locked > 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE resource_flow (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    ledger_id BIGINT NULL,
    resource_type SMALLINT NOT NULL,
    biz_key VARCHAR(128) NOT NULL,
    action SMALLINT NOT NULL,
    qty BIGINT NOT NULL,
    ref_no VARCHAR(64) NOT NULL,
    source VARCHAR(96) NOT NULL,
    round INTEGER NOT NULL,
    task_id BIGINT NULL,
    at BIGINT NOT NULL,
    bearer VARCHAR(128) NULL,
    available_after BIGINT NULL,
    locked_after BIGINT NULL,
    sold_after BIGINT NULL,
    note VARCHAR(32) NULL,
    reason VARCHAR(500) NULL,
    actor VARCHAR(160) NULL,
    CONSTRAINT uk_flow UNIQUE (ref_no, source, round, action, resource_type, biz_key),
    CONSTRAINT flow_action CHECK (action BETWEEN 0 AND 7),
    CONSTRAINT flow_qty CHECK (qty >= 0 OR action IN (6, 7)),
    CONSTRAINT resource_flow_at_ms CHECK (at BETWEEN 1577836800000 AND 4102444800000)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_flow_ledger ON resource_flow (ledger_id);

CREATE TABLE order_release_task (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
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
    next_at BIGINT NULL DEFAULT (CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)),
    created_at BIGINT NOT NULL DEFAULT (CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)),
    ledger_id BIGINT NULL,
    fence BIGINT NOT NULL DEFAULT 0,
    claimed_by VARCHAR(160) NULL,
    version BIGINT NOT NULL DEFAULT 0,
    kind SMALLINT NULL,
    error MEDIUMTEXT NULL,
    outcome SMALLINT NULL,
    first_failed_at BIGINT NULL,
    finished_at BIGINT NULL,
    ended_by VARCHAR(160) NULL,
    CONSTRAINT uk_order_res UNIQUE (ref_no, source, round, action, resource_type, biz_key),
    CONSTRAINT task_type CHECK (resource_type BETWEEN 0 AND 5),
    CONSTRAINT task_action CHECK (action BETWEEN 1 AND 5),
    CONSTRAINT task_qty CHECK (qty BETWEEN 1 AND 1000000000000000),
    CONSTRAINT task_status CHECK (status BETWEEN 0 AND 5),
    CONSTRAINT task_open CHECK (status NOT IN (0, 2, 3) OR next_at IS NOT NULL),
    CONSTRAINT task_next_at_ms CHECK (next_at BETWEEN 1577836800000 AND 4102444800000),
    CONSTRAINT task_created_at_ms CHECK (created_at BETWEEN 1577836800000 AND 4102444800000),
    CONSTRAINT task_finished_at_ms CHECK (finished_at BETWEEN 1577836800000 AND 4102444800000)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_task_open ON order_release_task (next_at, status, resource_type);

CREATE TABLE task_attempt (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    task_id BIGINT NOT NULL,
    n INTEGER NOT NULL,
    fence BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT NULL,
    outcome SMALLINT NULL,
    kind SMALLINT NULL,
    error MEDIUMTEXT NULL,
    actor VARCHAR(160) NOT NULL,
    CONSTRAINT uk_attempt UNIQUE (task_id, n)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE payment (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    channel VARCHAR(64) NOT NULL,
    channel_txn VARCHAR(64) NOT NULL,
    order_no VARCHAR(64) NOT NULL,
    status SMALLINT NOT NULL,
    amount BIGINT NOT NULL,
    currency VARCHAR(3) NOT NULL,
    occurred_at BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    decided_at BIGINT NULL,
    lacking MEDIUMTEXT NULL,
    CONSTRAINT uk_payment_txn UNIQUE (channel, channel_txn),
    CONSTRAINT payment_status CHECK (status BETWEEN 0 AND 6),
    CONSTRAINT payment_amount CHECK (amount >= 0),
    CONSTRAINT payment_recorded_at_ms CHECK (recorded_at BETWEEN 1577836800000 AND 4102444800000)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_payment_order ON payment (order_no);
CREATE INDEX idx_payment_status ON payment (status);

CREATE TABLE counter_delta (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    at BIGINT NOT NULL,
    body MEDIUMTEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE counter (
    minute BIGINT NOT NULL,
    name VARCHAR(64) NOT NULL,
    label VARCHAR(96) NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (minute, name, label)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE worker (
    name VARCHAR(160) NOT NULL PRIMARY KEY,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    unclean SMALLINT NOT NULL DEFAULT 1
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE app_user (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(64) NOT NULL,
    password_hash VARCHAR(255) NOT NULL,
    role VARCHAR(16) NOT NULL,
    enabled SMALLINT NOT NULL DEFAULT 1,
    language VARCHAR(16) NULL,
    zone VARCHAR(64) NULL,
    theme VARCHAR(16) NULL,
    totp VARCHAR(255) NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT uk_user_name UNIQUE (name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE session (
    id_hash VARCHAR(64) NOT NULL PRIMARY KEY,
    user_id BIGINT NOT NULL,
    csrf VARCHAR(64) NOT NULL,
    created_at BIGINT NOT NULL,
    signed_in_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    address VARCHAR(64) NULL,
    agent VARCHAR(255) NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_session_user ON session (user_id);

CREATE TABLE setup_code (
    code_hash VARCHAR(64) NOT NULL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE api_token (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(64) NOT NULL,
    scope VARCHAR(16) NOT NULL,
    token_hash VARCHAR(64) NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NULL,
    revoked_at BIGINT NULL,
    CONSTRAINT uk_token_hash UNIQUE (token_hash),
    CONSTRAINT uk_token_name UNIQUE (name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};

CREATE TABLE idempotency (
    token_id BIGINT NOT NULL,
    idem_key VARCHAR(255) NOT NULL,
    fingerprint VARCHAR(64) NOT NULL,
    status INTEGER NULL,
    body MEDIUMTEXT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (token_id, idem_key)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_idempotency_created ON idempotency (created_at);

CREATE TABLE audit_log (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    at BIGINT NOT NULL,
    actor VARCHAR(160) NOT NULL,
    action VARCHAR(64) NOT NULL,
    target VARCHAR(255) NOT NULL,
    reason VARCHAR(500) NULL,
    detail MEDIUMTEXT NULL,
    address VARCHAR(64) NULL,
    mac VARCHAR(64) NULL,
    seq BIGINT NULL,
    chain VARCHAR(64) NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {{bin}};
CREATE INDEX idx_audit_target ON audit_log (target);

-- The same rows for a person with a SQL client: words and times instead of numbers.
CREATE VIEW release_task_readable AS SELECT
    id, order_no, ref_no, source, round,
    CASE action WHEN 1 THEN 'release' WHEN 2 THEN 'settle' WHEN 3 THEN 'take_back' WHEN 4 THEN 'return_in' WHEN 5 THEN 'refund' END AS action,
    CASE resource_type WHEN 0 THEN 'payment' WHEN 1 THEN 'stock' WHEN 2 THEN 'coupon' WHEN 3 THEN 'funds' WHEN 4 THEN 'quota' WHEN 5 THEN 'slot' END AS resource_type,
    biz_key, qty,
    CASE status WHEN 0 THEN 'waiting' WHEN 1 THEN 'succeeded' WHEN 2 THEN 'retrying' WHEN 3 THEN 'manual' WHEN 4 THEN 'force_closed' WHEN 5 THEN 'superseded' END AS status,
    retry,
    CASE WHEN next_at < 4102444800000 THEN DATE_ADD('1970-01-01 00:00:00.000', INTERVAL next_at * 1000 MICROSECOND) END AS next_at,
    DATE_ADD('1970-01-01 00:00:00.000', INTERVAL created_at * 1000 MICROSECOND) AS created_at,
    DATE_ADD('1970-01-01 00:00:00.000', INTERVAL finished_at * 1000 MICROSECOND) AS finished_at,
    CASE kind WHEN 1 THEN 'remote_timeout' WHEN 2 THEN 'remote_error' WHEN 3 THEN 'remote_busy' WHEN 4 THEN 'locked_insufficient' WHEN 5 THEN 'state_mismatch' WHEN 6 THEN 'resource_missing' WHEN 7 THEN 'rejected' WHEN 8 THEN 'database' WHEN 9 THEN 'poisoned' END AS kind,
    error, ended_by
FROM order_release_task;
