/* How quick Ceph's own queue is, with the requests of benchmarks/twin.py: prints CPU seconds and events.
 *
 *     c++ -O3 -DNDEBUG -std=c++17 -I DMCLOCK/src -o dmclock_library dmclock_library.cc -pthread
 *     ./dmclock_library QUEUES REQUESTS COSTS GAPS
 *
 * DMCLOCK is a checkout of github.com/ceph/dmclock; it needs Boost's headers. COSTS and GAPS are files of doubles in
 * the machine's order, as many in both, a power of two. The queues are those of Ceph's mClockScheduler.h: tags are
 * computed as late as they can be, and what a class is allowed is asked for anew.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <vector>

#include "dmclock_server.h"

struct Request {
  uint64_t number;
};

using Queue = crimson::dmclock::PullPriorityQueue<int, Request, true, true, 2>;

static std::vector<double> numbers(const char *path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<double> found(static_cast<size_t>(file.tellg()) / sizeof(double));
  file.seekg(0);
  file.read(reinterpret_cast<char *>(found.data()), found.size() * sizeof(double));
  return found;
}

static double cpu_s() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int count, char **arguments) {
  if (count != 5) {
    std::fprintf(stderr, "dmclock_library QUEUES REQUESTS COSTS GAPS\n");
    return 2;
  }
  const long queues = std::atol(arguments[1]), requests = std::atol(arguments[2]);
  const std::vector<double> costs = numbers(arguments[3]), gaps = numbers(arguments[4]);
  const size_t mask = costs.size() - 1;
  const crimson::dmclock::ClientInfo classes[] = {{6e7, 2.0, 0.0}, {4e7, 1.0, 0.0}, {1e7, 1.0, 1.2e8}};
  std::vector<std::unique_ptr<Queue>> all;
  for (long number = 0; number < queues; number++)
    all.push_back(std::make_unique<Queue>([&](int own) { return &classes[own]; }, crimson::dmclock::AtLimit::Wait));
  const crimson::dmclock::ReqParams alone;
  std::vector<int> waiting(queues, 0);
  double now = 1.0;
  uint64_t served = 0;
  const double begin = cpu_s();
  for (long n = 0; n < requests; n++) {
    Queue &queue = *all[n % queues];
    int &own_waiting = waiting[n % queues];
    now += gaps[n & mask];
    queue.add_request(std::make_unique<Request>(Request{uint64_t(n)}), int(n % 3), alone, now,
                      crimson::dmclock::Cost(costs[n & mask]));
    own_waiting++;
    if (own_waiting > 24) {
      auto pulled = queue.pull_request(now);
      if (pulled.is_future()) {
        now = pulled.getTime();
        pulled = queue.pull_request(now);
      }
      if (pulled.is_retn()) {
        own_waiting--;
        served++;
      }
    }
  }
  std::printf("%.9f %llu\n", cpu_s() - begin, static_cast<unsigned long long>(requests + served));
  return 0;
}
