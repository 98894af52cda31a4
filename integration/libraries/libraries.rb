# Limits with rack-attack, on two servers: see go/main.go, which does the same.
require 'active_support'
require 'active_support/cache'
require 'active_support/notifications'
require 'rack'
require 'redis'
require 'rack/attack'

LIMIT = 20
CALLERS = 10 # processes
EACH = 20
PERIOD = 1_000_000_000 # seconds: a window whose end no test sees

Redis.silence_deprecations = true
Rack::Attack.throttle('calls', limit: LIMIT, period: PERIOD) { |request| request.get_header('HTTP_KEY') }
APP = Rack::MockRequest.new(Rack::Attack.new(->(_) { [200, {}, ['ok']] }))

def hit(store, key)
  Rack::Attack.cache.store = store
  response = APP.get('/', 'HTTP_KEY' => key)
  [response.status == 200, response.status, response.headers['retry-after'].nil?]
end

# How a limiter stores its counts.
STORES = {
  'rack-attack on redis-rb' => ->(addr) { Redis.new(url: "redis://#{addr}") },
  'rack-attack on RedisCacheStore' => lambda { |addr|
    ActiveSupport::Cache::RedisCacheStore.new(url: "redis://#{addr}", error_handler: ->(**) {})
  }
}.freeze

# The count of calls with this key, which rack-attack keeps. It turns keys to lower case.
def counted(store, key)
  Rack::Attack.cache.store = store
  Rack::Attack.cache.read("#{Time.now.to_i / PERIOD}:calls:#{key.downcase}").to_i
end

# Whether a limiter has admitted what it promises. On RedisCacheStore, rack-attack reads a count and, if there is none,
# writes one: first calls that race begin it again.
def right?(name, admitted)
  name.end_with?('RedisCacheStore') ? admitted >= LIMIT : admitted == LIMIT
end

# Calls from many processes; returns how many are admitted.
def count(make, addr, key)
  readers = Array.new(CALLERS) do
    reader, writer = IO.pipe
    fork do
      reader.close
      store = make.call(addr)
      writer.puts(Array.new(EACH) { hit(store, key) }.count(&:first))
      writer.close
      exit!
    end
    writer.close
    reader
  end
  total = readers.sum { |reader| reader.gets.to_i }
  Process.waitall
  total
end

# rack-attack admits calls while its server is stopped: their count begins with one each time.
def await(store)
  600.times do
    hit(store, 'await')
    return if counted(store, 'await').positive?

    sleep 0.1
  end
end

def main
  $stdout.sync = true
  runs = STORES.flat_map do |name, make|
    ARGV.map do |addr|
      store = make.call(addr)
      { name: name, make: make, addr: addr, store: store,
        outcome: { admitted: count(make, addr, name),
                   replies: Array.new(LIMIT + 3) { hit(store, "#{name} 2") + [counted(store, "#{name} 2")] } } }
    end
  end
  puts 'stop'
  $stdin.gets
  runs.each do |run|
    admitted = Array.new(LIMIT + 3) { hit(run[:store], 'stopped').first }
    run[:outcome][:stopped] = admitted.all? ? 'admits all' : admitted.to_s
  end
  puts 'start'
  $stdin.gets
  failed = false
  runs.group_by { |run| run[:name] }.each do |name, both|
    both.each do |run|
      await(run[:store])
      run[:outcome][:again] = count(run[:make], run[:addr], "#{name} 3")
    end
    ours, theirs = both.map { |run| run[:outcome] }
    printf("%-32s %d of %d calls admitted, %d after a restart, while stopped: %s\n", name, ours[:admitted],
           CALLERS * EACH, ours[:again], ours[:stopped])
    equal = %i[replies stopped].all? { |part| ours[part] == theirs[part] }
    next if equal && [ours, theirs].all? { |o| right?(name, o[:admitted]) && right?(name, o[:again]) }

    puts "FAILED: ours #{ours}\n      Redis's #{theirs}"
    failed = true
  end
  exit!(failed ? 1 : 0)
end

main
