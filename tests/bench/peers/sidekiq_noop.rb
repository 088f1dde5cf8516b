# The job of the Sidekiq row. Redis's URL is in REDIS_URL.
require 'sidekiq'

# Debian's redis-rb warns about each read of Debian's Sidekiq.
Redis.silence_deprecations = true if Redis.respond_to?(:silence_deprecations=)

class Noop
  include Sidekiq::Worker

  def perform; end
end
