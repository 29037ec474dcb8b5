-- CreateEnum
CREATE TYPE "run_kind" AS ENUM ('ASSISTANT', 'RESEARCH', 'RESEARCH_WORKER');

-- CreateEnum
CREATE TYPE "run_status" AS ENUM ('QUEUED', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED');

-- AlterEnum
ALTER TYPE "purge_kind" ADD VALUE 'RUN';

-- AlterTable
ALTER TABLE "messages" ADD COLUMN     "is_error" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "reasoning" JSONB,
ADD COLUMN     "tool_call_id" TEXT,
ADD COLUMN     "tool_calls" JSONB;

-- AlterTable
ALTER TABLE "threads" ADD COLUMN     "ephemeral" BOOLEAN NOT NULL DEFAULT false;

-- CreateTable
CREATE TABLE "assistants" (
    "id" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "instructions" TEXT NOT NULL,
    "model" TEXT,
    "tools" JSONB NOT NULL,
    "ephemeral" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "assistants_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "runs" (
    "id" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "kind" "run_kind" NOT NULL,
    "status" "run_status" NOT NULL DEFAULT 'QUEUED',
    "assistant_id" TEXT,
    "thread_id" TEXT,
    "scratchpad_id" TEXT,
    "parent_run_id" TEXT,
    "task" TEXT NOT NULL,
    "task_message_id" TEXT NOT NULL,
    "model" TEXT,
    "output" TEXT,
    "unverified_citations" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "last_error_code" TEXT,
    "last_error_message" TEXT,
    "turn_count" INTEGER NOT NULL DEFAULT 0,
    "max_turns" INTEGER NOT NULL,
    "max_workers" INTEGER NOT NULL DEFAULT 0,
    "meta_data" JSONB NOT NULL DEFAULT '{}',
    "cancel_requested_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "runs_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "assistants_owner_id_id_idx" ON "assistants"("owner_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "assistants_id_owner_id_key" ON "assistants"("id", "owner_id");

-- CreateIndex
CREATE INDEX "runs_owner_id_id_idx" ON "runs"("owner_id", "id");

-- CreateIndex
CREATE INDEX "runs_thread_id_id_idx" ON "runs"("thread_id", "id");

-- CreateIndex
CREATE INDEX "runs_parent_run_id_id_idx" ON "runs"("parent_run_id", "id");

-- CreateIndex
CREATE INDEX "runs_assistant_id_idx" ON "runs"("assistant_id");

-- CreateIndex
CREATE INDEX "runs_scratchpad_id_idx" ON "runs"("scratchpad_id");

-- CreateIndex
CREATE UNIQUE INDEX "runs_id_owner_id_key" ON "runs"("id", "owner_id");

-- AddForeignKey
ALTER TABLE "assistants" ADD CONSTRAINT "assistants_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE RESTRICT;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE RESTRICT;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_assistant_id_owner_id_fkey" FOREIGN KEY ("assistant_id", "owner_id") REFERENCES "assistants"("id", "owner_id") ON DELETE SET NULL ("assistant_id") ON UPDATE RESTRICT;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_thread_id_owner_id_fkey" FOREIGN KEY ("thread_id", "owner_id") REFERENCES "threads"("id", "owner_id") ON DELETE CASCADE ON UPDATE RESTRICT;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_scratchpad_id_owner_id_fkey" FOREIGN KEY ("scratchpad_id", "owner_id") REFERENCES "scratchpads"("id", "owner_id") ON DELETE SET NULL ("scratchpad_id") ON UPDATE RESTRICT;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_parent_run_id_owner_id_fkey" FOREIGN KEY ("parent_run_id", "owner_id") REFERENCES "runs"("id", "owner_id") ON DELETE CASCADE ON UPDATE RESTRICT;

-- What follows is written by hand: Prisma cannot express it, and its drift check does not see it. By hand above, too: the
-- column lists of the two ON DELETE SET NULL (a run keeps its owner when its assistant or scratchpad goes).

-- One active root run for each thread, whoever races.
CREATE UNIQUE INDEX "runs_active_thread_id_key" ON "runs"("thread_id")
    WHERE "status" IN ('QUEUED', 'IN_PROGRESS') AND "parent_run_id" IS NULL;

-- For the sweep of what a process that died left behind.
CREATE INDEX "runs_active_idx" ON "runs"("id") WHERE "status" IN ('QUEUED', 'IN_PROGRESS');
CREATE INDEX "threads_ephemeral_idx" ON "threads"("id") WHERE "ephemeral";
CREATE INDEX "assistants_ephemeral_idx" ON "assistants"("id") WHERE "ephemeral";

ALTER TABLE "runs"
    ADD CONSTRAINT "runs_parent_check" CHECK (("kind" = 'RESEARCH_WORKER') = ("parent_run_id" IS NOT NULL)),
    ADD CONSTRAINT "runs_turns_check" CHECK ("max_turns" >= 1 AND "turn_count" >= 0 AND "max_workers" >= 0),
    ADD CONSTRAINT "runs_started_check" CHECK (
        CASE "status"
            WHEN 'QUEUED' THEN "started_at" IS NULL
            WHEN 'IN_PROGRESS' THEN "started_at" IS NOT NULL
            WHEN 'COMPLETED' THEN "started_at" IS NOT NULL
            ELSE true
        END
    ),
    ADD CONSTRAINT "runs_finished_check" CHECK (("status" IN ('QUEUED', 'IN_PROGRESS')) = ("finished_at" IS NULL)),
    ADD CONSTRAINT "runs_output_check" CHECK (("status" = 'COMPLETED') = ("output" IS NOT NULL)),
    ADD CONSTRAINT "runs_last_error_check" CHECK (
        ("status" = 'FAILED') = ("last_error_code" IS NOT NULL)
        AND ("last_error_code" IS NULL) = ("last_error_message" IS NULL)
    );

-- A run that ended never changes again: what it hangs on may go, how it ended stays. And nothing is queued twice.
CREATE FUNCTION "keep_run_outcome"() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'the run % is % and stays so', OLD."id", OLD."status" USING ERRCODE = 'integrity_constraint_violation';
END;
$$;

CREATE TRIGGER "runs_outcome_kept" BEFORE UPDATE ON "runs"
    FOR EACH ROW
    WHEN (
        OLD."status" NOT IN ('QUEUED', 'IN_PROGRESS')
        AND (
            OLD."status", OLD."output", OLD."unverified_citations", OLD."last_error_code", OLD."last_error_message",
            OLD."turn_count", OLD."cancel_requested_at", OLD."started_at", OLD."finished_at"
        ) IS DISTINCT FROM (
            NEW."status", NEW."output", NEW."unverified_citations", NEW."last_error_code", NEW."last_error_message",
            NEW."turn_count", NEW."cancel_requested_at", NEW."started_at", NEW."finished_at"
        )
        OR OLD."status" <> 'QUEUED' AND NEW."status" = 'QUEUED'
    )
    EXECUTE FUNCTION "keep_run_outcome"();

-- Whatever removes a run (a cascade, an administrator) takes along what was made for it alone.
CREATE FUNCTION "delete_ephemera"() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
AS $$
BEGIN
    DELETE FROM "threads" WHERE "ephemeral" AND "id" IN (SELECT "thread_id" FROM "deleted");
    DELETE FROM "assistants" WHERE "ephemeral" AND "id" IN (SELECT "assistant_id" FROM "deleted");
    RETURN NULL;
END;
$$;

CREATE TRIGGER "runs_deleted" AFTER DELETE ON "runs"
    REFERENCING OLD TABLE AS "deleted"
    FOR EACH STATEMENT EXECUTE FUNCTION "write_purge_tasks"('RUN');

CREATE TRIGGER "runs_ephemera_deleted" AFTER DELETE ON "runs"
    REFERENCING OLD TABLE AS "deleted"
    FOR EACH STATEMENT EXECUTE FUNCTION "delete_ephemera"();

CREATE TRIGGER "runs_truncated" BEFORE TRUNCATE ON "runs"
    FOR EACH STATEMENT EXECUTE FUNCTION "write_purge_tasks_for_all"('RUN');
