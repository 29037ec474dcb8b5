-- AlterTable
ALTER TABLE "messages" ADD COLUMN     "assistant_id" TEXT,
ADD COLUMN     "meta_data" JSONB NOT NULL DEFAULT '{}';
