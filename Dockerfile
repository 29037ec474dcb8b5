# The service for production: DATABASE_URL and REDIS_URL name its stores (docker-compose.yml brings both).

FROM node:20-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-progress
COPY prisma.config.ts tsconfig.json tsconfig.build.json tsconfig.client.json ./
COPY script/generate script/build script/
COPY prisma prisma
COPY src src
RUN script/generate && script/build

FROM node:20-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Optional and peer packages belong to tools of development, such as Prisma's command line.
RUN npm ci --no-progress --omit=dev --omit=optional --omit=peer

FROM node:20-slim
# The young generation is made larger than Node's default: less garbage is copied (docs/performance.md).
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 NODE_OPTIONS=--max-semi-space-size=64
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json ./
# Migrations are read at run time, by cli migrate.
COPY prisma/migrations prisma/migrations
COPY --from=build /app/dist dist
USER node
EXPOSE 4000
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then((response) => process.exit(response.ok ? 0 : 1), () => process.exit(1))"]
# Node itself is process 1, so that SIGTERM reaches the server. A process that only executes runs: `node dist/worker.js`.
CMD ["node", "dist/main.js"]
