// Limits with libraries that run on Redis, on two servers: see go/main.go, which does the same.
'use strict'
const Redis = require('ioredis').Redis ?? require('ioredis')
const limit = 20, callers = 20, each = 10, day = 86_400_000

const connect = addr => {
  const redis = new Redis(`redis://${addr}`, { maxRetriesPerRequest: 0, retryStrategy: () => 100 })
  redis.on('error', () => {})
  return redis
}

// middleware returns a hit of an Express middleware.
const middleware = run => key => new Promise((admit, fail) => {
  const headers = {}
  const response = {
    setHeader: (name, value) => { headers[name.toLowerCase()] = value },
    append: (name, value) => { headers[name.toLowerCase()] = value },
    getHeader: name => headers[name.toLowerCase()],
    status() { return this }, send: () => admit([false, headers['ratelimit-remaining']]), headersSent: false, on() {}
  }
  const next = error => error ? fail(error) : admit([true, headers['ratelimit-remaining']])
  Promise.resolve(run({ ip: '127.0.0.1', headers: {}, key, app: { get: () => false } }, response, next)).catch(fail)
})

// libraries have a function that makes a hit: key => [admitted, what else it says].
const libraries = {
  'rate-limiter-flexible': addr => {
    const { RateLimiterRedis } = require('rate-limiter-flexible')
    const limiter = new RateLimiterRedis({ storeClient: connect(addr), points: limit, duration: 86400 })
    return key => limiter.consume(key).then(r => [true, r.remainingPoints], r => {
      if (r instanceof Error) throw r
      return [false, r.remainingPoints]
    })
  },
  'express-rate-limit': async addr => {
    const { rateLimit } = require('express-rate-limit')
    const { RedisStore } = require('rate-limit-redis')
    const redis = connect(addr)
    const store = new RedisStore({ sendCommand: (...words) => redis.call(...words) })
    return middleware(rateLimit({ windowMs: day, limit, standardHeaders: 'draft-6', store, validate: false,
      keyGenerator: request => request.key }))
  },
  '@fastify/rate-limit': async addr => {
    const app = require('fastify')()
    await app.register(require('@fastify/rate-limit'), { max: limit, timeWindow: day, redis: connect(addr),
      keyGenerator: request => request.headers.key })
    app.get('/', async () => 'ok')
    await app.ready()
    return async key => {
      const r = await app.inject({ url: '/', headers: { key } })
      if (r.statusCode >= 500) throw new Error(r.body)
      return [r.statusCode === 200, r.headers['x-ratelimit-remaining']]
    }
  },
  '@nest-lab/throttler-storage-redis': addr => {
    const { ThrottlerStorageRedisService } = require('@nest-lab/throttler-storage-redis')
    const storage = new ThrottlerStorageRedisService(connect(addr))
    return async key => {
      const r = await storage.increment(key, day, limit, day, 'default')
      return [!r.isBlocked, r.totalHits]
    }
  },
  'async-ratelimiter': addr => {
    const RateLimiter = require('async-ratelimiter')
    const limiter = new RateLimiter({ db: connect(addr), max: limit, duration: day })
    return async key => {
      const r = await limiter.get({ id: key })
      return [r.remaining > 0, r.remaining]
    }
  },
  '@upstash/ratelimit fixed window': addr => upstash(addr, 'fixedWindow'),
  '@upstash/ratelimit sliding window': addr => upstash(addr, 'slidingWindow'),
  '@upstash/ratelimit token bucket': addr => upstash(addr, 'tokenBucket'),
  bottleneck: addr => {
    const Bottleneck = require('bottleneck')
    const limiters = {}
    return key => {
      limiters[key] ??= new Bottleneck({ id: key, datastore: 'ioredis', reservoir: limit, clearDatastore: false,
        Redis, clientOptions: { host: addr.split(':')[0], port: +addr.split(':')[1], retryStrategy: () => 100 },
        highWater: 0, strategy: Bottleneck.strategy.OVERFLOW })
      limiters[key].on('error', () => {})
      return limiters[key].incrementReservoir(-1).then(left => [left >= 0, left])
    }
  }
}

// upstash makes a hit of @upstash/ratelimit, whose client of HTTP an adapter replaces.
const upstash = (addr, algorithm) => {
  const { Ratelimit } = require('@upstash/ratelimit')
  const redis = connect(addr)
  const adapter = {
    evalsha: (sha, keys, args) => redis.evalsha(sha, keys.length, ...keys, ...args),
    eval: (script, keys, args) => redis.eval(script, keys.length, ...keys, ...args),
    scriptLoad: script => redis.script('LOAD', script)
  }
  const rule = algorithm === 'tokenBucket' ? Ratelimit.tokenBucket(1, '1 d', limit) : Ratelimit[algorithm](limit, '1 d')
  const limiter = new Ratelimit({ redis: adapter, limiter: rule, ephemeralCache: false, timeout: 0 })
  return async key => {
    const r = await limiter.limit(key)
    return [r.success, r.remaining]
  }
}

// onlyHere names libraries whose scripts have flags that Redis refuses.
const onlyHere = name => name.startsWith('@upstash')

const within = (ms, promise) => Promise.race([promise, new Promise((_, fail) => setTimeout(() => fail(new Error('late')), ms))])
const describe = (hit, key) => within(10_000, hit(key)).then(r => JSON.stringify(r), () => 'error')
const pause = ms => new Promise(done => setTimeout(done, ms))

const count = async (hit, key) => {
  let admitted = 0
  await Promise.all(Array.from({ length: callers }, async () => {
    for (let i = 0; i < each; i++) {
      const one = await hit(key).then(r => r[0] ? 1 : 0, () => -1000)
      admitted += one
    }
  }))
  return admitted
}

const wait = async (hit, name) => {
  for (let i = 0; i < 600 && await describe(hit, `wait ${name}`) === 'error'; i++) await pause(100)
}

const main = async () => {
  const addrs = process.argv.slice(2), runs = []
  const input = require('readline').createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  for (const [name, make] of Object.entries(libraries)) {
    for (const addr of onlyHere(name) ? addrs.slice(0, 1) : addrs) {
      const hit = await make(addr)
      await wait(hit, name)
      const outcome = { admitted: await count(hit, `node ${name}`), replies: [] }
      for (let i = 0; i < limit + 3; i++) outcome.replies.push(await describe(hit, `node ${name}2`))
      runs.push({ name, hit, outcome })
    }
  }
  console.log('stop')
  await input.next()
  await Promise.all(runs.map(async ({ name, hit, outcome }) => {
    // bottleneck waits for its server
    outcome.stopped = name === 'bottleneck' ? 'waits' : (await describe(hit, `stopped ${name}`)).split(',')[0]
  }))
  console.log('start')
  await input.next()
  let failed = false
  for (const name of Object.keys(libraries)) {
    const outcomes = []
    for (const { hit, outcome } of runs.filter(r => r.name === name)) {
      await wait(hit, name)
      outcome.again = await count(hit, `node ${name}3`)
      outcomes.push(outcome)
    }
    const ours = outcomes[0], redis = outcomes.at(-1)
    console.log(`${name.padEnd(34)} ${ours.admitted} of ${callers * each} calls admitted, ${ours.again} after a restart, ` +
      `while stopped: ${ours.stopped}`)
    if (JSON.stringify(ours) !== JSON.stringify(redis) || ours.admitted !== limit || ours.again !== limit) {
      console.log('FAILED: ours', JSON.stringify(ours), '\n      Redis\'s', JSON.stringify(redis))
      failed = true
    }
  }
  process.exit(failed ? 1 : 0)
}

main()
