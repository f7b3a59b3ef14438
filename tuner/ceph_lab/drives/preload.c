/* Preloaded into ceph-osd: passes BlueStore's I/O on, and completes it when the model of the drive says so.
 *
 * CEPH_TUNER_DRIVES names a file with a line for each block device: `MAJOR:MINOR` and the words of `drive_new`.
 * What is done through a descriptor of such a device takes the drive's time; everything else goes straight through.
 * Nothing is ever flushed to the device behind: a throwaway cluster need not survive a power cut.
 *
 * CEPH_TUNER_HASTE names files, with colons between them, that hold one double each in the machine's own format: until
 * the last of these seconds of CLOCK_MONOTONIC the drives take no time at all, so that what a load needs is written
 * quickly. Who wants more time moves it on.
 *
 * CEPH_TUNER_SYNC_DELAY names a file with seconds, read anew each time: fdatasync and fsync of any file take so much
 * longer. A monitor becomes slow that way while it runs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

#define DRIVES 16
#define HASTES 2
#define DESCRIPTORS 1024
#define REAPED 64
/* the kernel is asked again after so long where the model is ahead of it (a device that is slower than its drive) */
#define KERNEL_LATE_S 2e-4
/* read_ahead_kb of a block device, if nobody changed it */
#define READ_AHEAD (128 * 1024)

struct device {
  dev_t number;
  struct drive *drive;
};

/* an asynchronous request on its way */
struct flight {
  struct iocb *iocb;
  struct drive *drive;
  long ticket;
  int answered; /* the kernel has done it */
  struct io_event event;
};

/* one of BlueStore's queues (io_context_t, as libaio calls it): each has a thread of its own that waits in io_getevents */
struct context {
  aio_context_t id;
  pthread_cond_t changed;
  struct flight *flights;
  long count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct device devices[DRIVES];
static int device_count;
static const volatile double *haste_until[HASTES];
static int haste_count;
static volatile char is_random[DESCRIPTORS]; /* the kernel reads nothing ahead */
static struct context contexts[2 * DRIVES];
static int context_count;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static struct timespec timespec_of(double seconds) {
  return (struct timespec){(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
}

static void sleep_until(double seconds) {
  struct timespec until = timespec_of(seconds);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
}

static void refuse(const char *line) {
  fprintf(stderr, "drive: cannot read `%s`\n", line);
  _exit(64);
}

static void map_haste(const char *name, size_t length) {
  char path[4096];
  if (length >= sizeof path) return;
  memcpy(path, name, length);
  path[length] = 0;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (descriptor < 0) return;
  /* a shorter file would end the process at the first look */
  if (!fstat(descriptor, &status) && status.st_size >= (off_t)sizeof *haste_until[0]) {
    void *mapped = mmap(NULL, sizeof *haste_until[0], PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapped != MAP_FAILED) haste_until[haste_count++] = mapped;
  }
  close(descriptor);
}

static void set_up(void) {
  const char *path = getenv("CEPH_TUNER_DRIVES");
  FILE *file = path ? fopen(path, "re") : NULL;
  if (path && !file) refuse(path);
  char line[1024];
  while (file && fgets(line, sizeof line, file)) {
    unsigned high, low;
    int words = 0;
    if (sscanf(line, "%u:%u %n", &high, &low, &words) < 2 || !words || device_count == DRIVES) refuse(line);
    struct drive *drive = drive_new(line + words);
    if (!drive) refuse(line);
    devices[device_count++] = (struct device){makedev(high, low), drive};
  }
  if (file) fclose(file);
  const char *hastes = getenv("CEPH_TUNER_HASTE");
  while (hastes && *hastes && haste_count < HASTES) {
    size_t length = strcspn(hastes, ":");
    map_haste(hastes, length);
    hastes += length + (hastes[length] == ':');
  }
}

static int in_haste(void) {
  for (int i = 0; i < haste_count; i++)
    if (now() < *haste_until[i]) return 1;
  return 0;
}

static struct drive *drive_of(int descriptor) {
  pthread_once(&once, set_up);
  struct stat status;
  if (!device_count || fstat(descriptor, &status) || !S_ISBLK(status.st_mode)) return NULL;
  for (int i = 0; i < device_count; i++)
    if (devices[i].number == status.st_rdev) return devices[i].drive;
  return NULL;
}

/* Wait until the drive has done a request of a thread that waits for nothing else. */
static void take(struct drive *drive, int kind, uint64_t offset, uint64_t size, double issued) {
  if (in_haste()) return;
  pthread_mutex_lock(&lock);
  long ticket = drive_submit(drive, issued, kind, offset, size);
  for (;;) {
    double t = now();
    drive_advance(drive, t);
    double done = ticket < 0 ? t : drive_done_at(drive, ticket);
    double until = isfinite(done) ? done : drive_decides_at(drive);
    if (done <= t) break;
    pthread_mutex_unlock(&lock);
    sleep_until(until);
    pthread_mutex_lock(&lock);
  }
  if (ticket >= 0) drive_release(drive, ticket);
  pthread_mutex_unlock(&lock);
}

static struct context *context_of(aio_context_t id) {
  for (int i = 0; i < context_count; i++)
    if (contexts[i].id == id) return &contexts[i];
  if (context_count == 2 * DRIVES) return NULL;
  struct context *context = &contexts[context_count++];
  context->id = id;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&context->changed, &attributes);
  return context;
}

static uint64_t bytes_in(const struct iovec *parts, long count) {
  uint64_t bytes = 0;
  for (long i = 0; i < count; i++) bytes += parts[i].iov_len;
  return bytes;
}

static uint64_t bytes_of(const struct iocb *iocb) {
  if (iocb->aio_lio_opcode == IOCB_CMD_PREAD || iocb->aio_lio_opcode == IOCB_CMD_PWRITE) return iocb->aio_nbytes;
  return bytes_in((const struct iovec *)(uintptr_t)iocb->aio_buf, (long)iocb->aio_nbytes);
}

static int register_flight(struct context *context, struct iocb *iocb, double issued) {
  int write = iocb->aio_lio_opcode == IOCB_CMD_PWRITE || iocb->aio_lio_opcode == IOCB_CMD_PWRITEV;
  struct drive *drive = drive_of(iocb->aio_fildes);
  if (in_haste()) drive = NULL;
  if (context->count == context->room) {
    long room = context->room ? 2 * context->room : 256;
    struct flight *flights = realloc(context->flights, room * sizeof *flights);
    if (!flights) return -1;
    context->flights = flights;
    context->room = room;
  }
  long ticket = -1;
  if (drive) ticket = drive_submit(drive, issued, write ? DRIVE_WRITE : DRIVE_READ, (uint64_t)iocb->aio_offset, bytes_of(iocb));
  context->flights[context->count++] = (struct flight){iocb, ticket < 0 ? NULL : drive, ticket, 0, {0}};
  return 0;
}

static void remove_flight(struct context *context, long place) {
  struct flight *flight = &context->flights[place];
  if (flight->drive) drive_release(flight->drive, flight->ticket);
  memmove(flight, flight + 1, (--context->count - place) * sizeof *flight);
}

int io_submit(aio_context_t id, long count, struct iocb *iocbs[]) {
  double issued = now();
  pthread_mutex_lock(&lock);
  struct context *context = context_of(id);
  long registered = 0;
  while (context && registered < count && register_flight(context, iocbs[registered], issued) == 0) registered++;
  /* under the lock: an event must not be reaped before its flight is known, nor another's flight be taken away */
  int taken = registered || !count ? (int)syscall(SYS_io_submit, id, registered, iocbs) : -1;
  int failure = registered || !count ? errno : ENOMEM;
  for (long left = registered - (taken > 0 ? taken : 0); left > 0; left--) remove_flight(context, context->count - 1);
  if (context) pthread_cond_broadcast(&context->changed);
  pthread_mutex_unlock(&lock);
  return taken < 0 ? -failure : taken;
}

/* What the kernel has done; a negative errno where it does not answer. */
static int reap(struct context *context) {
  struct io_event events[REAPED];
  struct timespec none = {0, 0};
  int count;
  do {
    count = (int)syscall(SYS_io_getevents, context->id, 0L, (long)REAPED, events, &none);
    if (count < 0) return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < count; i++)
      for (long j = 0; j < context->count; j++) {
        struct flight *flight = &context->flights[j];
        if (flight->answered || (uint64_t)(uintptr_t)flight->iocb != events[i].obj) continue;
        flight->answered = 1;
        flight->event = events[i];
        break;
      }
  } while (count == REAPED);
  return 0;
}

/* Hands out what is done by now, the oldest first; `next` is when to look again. */
static long collect(struct context *context, long most, struct io_event *events, double t, double *next) {
  long given = 0;
  for (long i = 0; i < context->count && given < most;) {
    struct flight *flight = &context->flights[i];
    double done = t;
    if (flight->drive) {
      drive_advance(flight->drive, t);
      done = drive_done_at(flight->drive, flight->ticket);
      if (!isfinite(done)) done = fmax(t + 1e-6, drive_decides_at(flight->drive));
    }
    if (done <= t && flight->answered) {
      events[given++] = flight->event;
      remove_flight(context, i);
      continue;
    }
    *next = fmin(*next, done <= t ? t + KERNEL_LATE_S : done);
    i++;
  }
  return given;
}

int io_getevents(aio_context_t id, long least, long most, struct io_event *events, struct timespec *timeout) {
  double end = timeout ? now() + timeout->tv_sec + timeout->tv_nsec * 1e-9 : INFINITY;
  pthread_mutex_lock(&lock);
  struct context *context = context_of(id);
  long given = context ? 0 : -ENOMEM;
  while (context) {
    double t = now(), next = fmin(end, t + 1);
    int failure = reap(context);
    given += collect(context, most - given, events + given, t, &next);
    if (failure < 0 && !given) given = failure;
    if (failure < 0 || given >= least || t >= end) break;
    struct timespec until = timespec_of(next);
    pthread_cond_timedwait(&context->changed, &lock, &until);
  }
  pthread_mutex_unlock(&lock);
  return (int)given;
}

int io_destroy(aio_context_t id) {
  pthread_mutex_lock(&lock);
  struct context *context = context_of(id);
  if (context) {
    while (context->count) remove_flight(context, context->count - 1);
    context->id = 0;
  }
  pthread_mutex_unlock(&lock);
  return syscall(SYS_io_destroy, id) < 0 ? -errno : 0;
}

/* The real I/O first: its time runs within the drive's. */
#define TIMED(call, kind, offset, size)                        \
  struct drive *drive = drive_of(descriptor);                  \
  double issued = now();                                       \
  ssize_t result = call;                                       \
  int failure = errno;                                         \
  if (drive && result >= 0) take(drive, kind, offset, size, issued); \
  errno = failure;                                             \
  return result

ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t offset) {
  TIMED(syscall(SYS_pwritev, descriptor, parts, (long)count, (long)offset, 0L), DRIVE_WRITE, offset,
        bytes_in(parts, count));
}
ssize_t preadv64(int descriptor, const struct iovec *parts, int count, off64_t offset) {
  uint64_t bytes = bytes_in(parts, count);
  int through_cache = !(fcntl(descriptor, F_GETFL) & O_DIRECT);
  if (through_cache && drive_of(descriptor)) {
    /* what the host's page cache holds costs nothing, as on any host; what it lacks is read with the kernel's readahead,
     * and the kernel has it from then on */
    ssize_t cached = syscall(SYS_preadv2, descriptor, parts, (long)count, (long)offset, 0L, (long)RWF_NOWAIT);
    if (cached == (ssize_t)bytes) return cached;
    int ahead = descriptor >= DESCRIPTORS || !is_random[descriptor];
    if (ahead && bytes < READ_AHEAD) bytes = READ_AHEAD;
  }
  TIMED(syscall(SYS_preadv, descriptor, parts, (long)count, (long)offset, 0L), DRIVE_READ, offset, bytes);
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset) {
  TIMED(syscall(SYS_pwrite64, descriptor, data, size, (long)offset), DRIVE_WRITE, offset, size);
}
ssize_t pread64(int descriptor, void *data, size_t size, off64_t offset) {
  struct iovec part = {data, size};
  return preadv64(descriptor, &part, 1, offset);
}
ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
  return pwritev64(descriptor, parts, count, offset);
}
ssize_t preadv(int descriptor, const struct iovec *parts, int count, off_t offset) {
  return preadv64(descriptor, parts, count, offset);
}
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
  return pwrite64(descriptor, data, size, offset);
}
ssize_t pread(int descriptor, void *data, size_t size, off_t offset) {
  return pread64(descriptor, data, size, offset);
}

/* BlueStore has its buffered reads at random: of these the kernel reads what is asked for alone */
int posix_fadvise64(int descriptor, off64_t offset, off64_t size, int advice) {
  if (descriptor >= 0 && descriptor < DESCRIPTORS && drive_of(descriptor)) {
    if (advice == POSIX_FADV_RANDOM) is_random[descriptor] = 1;
    if (advice == POSIX_FADV_NORMAL || advice == POSIX_FADV_SEQUENTIAL) is_random[descriptor] = 0;
  }
  return syscall(SYS_fadvise64, descriptor, (long)offset, (long)size, (long)advice) < 0 ? errno : 0;
}
int posix_fadvise(int descriptor, off_t offset, off_t size, int advice) {
  return posix_fadvise64(descriptor, offset, size, advice);
}

static void sync_delay(void) {
  const char *path = getenv("CEPH_TUNER_SYNC_DELAY");
  FILE *file = path ? fopen(path, "re") : NULL;
  double seconds = 0;
  if (file && fscanf(file, "%lf", &seconds) == 1 && seconds > 0) sleep_until(now() + seconds);
  if (file) fclose(file);
}

static int synchronise(int descriptor, long number) {
  struct drive *drive = drive_of(descriptor);
  if (drive) {
    take(drive, DRIVE_FLUSH, 0, 0, now());
    return 0;
  }
  sync_delay();
  return (int)syscall(number, descriptor);
}

int fdatasync(int descriptor) { return synchronise(descriptor, SYS_fdatasync); }
int fsync(int descriptor) { return synchronise(descriptor, SYS_fsync); }

int sync_file_range(int descriptor, off64_t offset, off64_t count, unsigned flags) {
  if (drive_of(descriptor)) return 0;
  return (int)syscall(SYS_sync_file_range, descriptor, (long)offset, (long)count, (unsigned long)flags);
}
