-- Indexes of open rows only, on every engine: MySQL and MariaDB have no partial index, and with an equality in front
-- of the time, (asking, due_at), their optimizer may walk from the first NULL through every order ever closed.

-- Due orders: a range on a leading time has nothing to walk. Those whose channel is asked have a time of their own.
ALTER TABLE orders ADD COLUMN ask_at BIGINT GENERATED ALWAYS AS (CASE WHEN asking = 1 THEN due_at END) STORED;
DROP INDEX idx_orders_due;
CREATE INDEX idx_orders_due ON orders (due_at, asking) WHERE due_at IS NOT NULL;
CREATE INDEX idx_orders_ask ON orders (ask_at) WHERE ask_at IS NOT NULL;

-- Due tasks: the lane has to stand in front, so a finished task has no open lane.
ALTER TABLE order_release_task ADD COLUMN open_lane SMALLINT GENERATED ALWAYS AS (CASE WHEN next_at IS NULL THEN NULL ELSE lane END) STORED;
DROP INDEX idx_task_open;
CREATE INDEX idx_task_open ON order_release_task (open_lane, next_at, status, resource_type) WHERE next_at IS NOT NULL;

-- A conflict is also shown on the page of the order that the second telling named.
CREATE INDEX idx_conflict_order ON payment_conflict (order_no);

-- Flow rows that name no ledger of ours are found by their key: those of the shop's tables.
ALTER TABLE resource_flow ADD COLUMN shops_key VARCHAR(128) COLLATE "C" GENERATED ALWAYS AS (CASE WHEN ledger_id IS NULL THEN biz_key END) STORED;
CREATE INDEX idx_flow_shops ON resource_flow (shops_key) WHERE shops_key IS NOT NULL;
