#include "model.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* mean of sqrt(distance) between two random places, the whole stroke being 1 */
#define MEAN_ROOT_DISTANCE (8.0 / 15.0)
#define ALMOST_A_TURN (1 - 1e-6)
#define MOST_HELD 1024

enum stage { FREE, WAITING, DECIDED };

struct request {
  enum stage stage;
  int kind;
  uint64_t serial, offset, size;
  double issued, held, done; /* held: since when it is in the drive's own queue */
};

struct drive {
  int disk;
  double jitter, flush_s;
  uint64_t random, serial;
  /* flash */
  double latency_s[2], iops[2], bytes_s[2];
  double line_free; /* when the back end has done all that was issued */
  /* disk */
  double track_seek_s, average_seek_s, rotation_s, media_bytes_s, patience_s;
  uint64_t size, queue, readahead;
  double head_free;   /* when the head has done what it is at */
  uint64_t head_at;   /* where it is then */
  int last_kind;
  /* requests */
  struct request *requests;
  long room;
};

struct word {
  const char *name;
  size_t at;
  int whole; /* a uint64_t, else a double */
};

#define REAL(name, field) {name, offsetof(struct drive, field), 0}
#define WHOLE(name, field) {name, offsetof(struct drive, field), 1}

static const struct word FLASH[] = {
    REAL("read_s", latency_s[0]),      REAL("write_s", latency_s[1]),    REAL("read_iops", iops[0]),
    REAL("write_iops", iops[1]),       REAL("read_bytes_s", bytes_s[0]), REAL("write_bytes_s", bytes_s[1]),
    REAL("flush_s", flush_s),          REAL("jitter", jitter),           WHOLE("seed", random),
};
static const struct word DISK[] = {
    REAL("track_seek_s", track_seek_s), REAL("average_seek_s", average_seek_s), REAL("rotation_s", rotation_s),
    REAL("bytes_s", media_bytes_s),     WHOLE("size", size),                    WHOLE("queue", queue),
    REAL("patience_s", patience_s),     WHOLE("readahead", readahead),          REAL("flush_s", flush_s),
    WHOLE("seed", random),
};

static int read_word(struct drive *drive, const char *word, const struct word *known, size_t count, unsigned *seen) {
  const char *equals = strchr(word, '=');
  if (!equals) return -1;
  for (size_t i = 0; i < count; i++) {
    if (strlen(known[i].name) != (size_t)(equals - word) || strncmp(known[i].name, word, equals - word)) continue;
    char *end, *field = (char *)drive + known[i].at;
    double value = strtod(equals + 1, &end);
    if (end == equals + 1 || *end || !isfinite(value) || value < 0) return -1;
    if (known[i].whole) *(uint64_t *)field = (uint64_t)value;
    else *(double *)field = value;
    *seen |= 1u << i;
    return 0;
  }
  return -1;
}

struct drive *drive_new(const char *words) {
  struct drive *drive = calloc(1, sizeof *drive);
  char *copy = drive ? strdup(words) : NULL, *rest = NULL;
  if (!copy) { free(drive); return NULL; }
  char *word = strtok_r(copy, " \t\n", &rest);
  const struct word *known = FLASH;
  size_t count = sizeof FLASH / sizeof *FLASH;
  unsigned seen = 0;
  int wrong = !word;
  if (word && !strcmp(word, "kind=disk")) {
    drive->disk = 1;
    known = DISK;
    count = sizeof DISK / sizeof *DISK;
  } else if (word && strcmp(word, "kind=flash")) {
    wrong = 1;
  }
  while (!wrong && (word = strtok_r(NULL, " \t\n", &rest))) wrong = read_word(drive, word, known, count, &seen) != 0;
  wrong = wrong || seen != (1u << count) - 1;
  if (!wrong && drive->disk)
    wrong = !(drive->rotation_s > 0 && drive->media_bytes_s > 0 && drive->size > 0 && drive->queue > 0 && drive->queue <= MOST_HELD);
  if (!wrong && !drive->disk)
    for (int kind = 0; kind < 2; kind++) wrong = wrong || !(drive->iops[kind] > 0 && drive->bytes_s[kind] > 0);
  free(copy);
  if (wrong) { free(drive); return NULL; }
  drive->last_kind = -1;
  return drive;
}

void drive_free(struct drive *drive) {
  if (drive) free(drive->requests);
  free(drive);
}

/* splitmix64, Steele et al. 2014: the same seed gives the same drive */
static double uniform(struct drive *drive) {
  uint64_t z = (drive->random += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

/* log-normal with mean 1 */
static double jitter(struct drive *drive) {
  if (drive->jitter <= 0) return 1;
  double normal = sqrt(-2 * log(uniform(drive))) * cos(2 * M_PI * uniform(drive));
  return exp(drive->jitter * normal - drive->jitter * drive->jitter / 2);
}

static double larger(double one, double other) { return one > other ? one : other; }

/* Flash: everything goes through one back end at its rate, and takes a latency on top that overlaps with the others'.
 * Alone, 4 KiB take the latency; with many under way, IOPS and bandwidth are the drive's. */
static double flash_done(struct drive *drive, double now, int kind, uint64_t size) {
  double start = larger(now, drive->line_free);
  if (kind == DRIVE_FLUSH) {
    drive->line_free = start + drive->flush_s;
    return drive->line_free;
  }
  double smallest = 1 / drive->iops[kind];
  double service = larger(smallest, size / drive->bytes_s[kind]);
  drive->line_free = start + service;
  return drive->line_free + larger(0, drive->latency_s[kind] - smallest) * jitter(drive);
}

static double turn(double turns) { return turns - floor(turns); }

/* Disk: seek, wait until the place comes round, transfer. */
static double disk_done(const struct drive *drive, double start, const struct request *request) {
  double transfer = request->size / drive->media_bytes_s;
  if (request->kind == DRIVE_FLUSH) return start + drive->flush_s;
  if (request->kind == DRIVE_READ && drive->last_kind == DRIVE_READ && request->offset == drive->head_at) {
    /* read ahead: the head went on while nobody asked */
    if ((start - drive->head_free) * drive->media_bytes_s <= drive->readahead)
      return larger(start, drive->head_free + transfer);
  }
  double track = drive->media_bytes_s * drive->rotation_s;
  double from = (double)drive->head_at, to = (double)request->offset;
  double there = start;
  if (floor(from / track) != floor(to / track)) {
    double reach = (drive->average_seek_s - drive->track_seek_s) / MEAN_ROOT_DISTANCE;
    there += drive->track_seek_s + reach * sqrt(fmin(1, fabs(to - from) / (double)drive->size));
    if (request->offset == drive->head_at) there = start; /* the next track of a stream: tracks are skewed for it */
  }
  double missing = turn(turn(to / track) - turn(there / drive->rotation_s));
  if (missing > ALMOST_A_TURN) missing = 0;
  return there + missing * drive->rotation_s + transfer;
}

/* The waiting request that is done first, of those that the drive's own queue holds; the oldest where that one has
 * waited too long (shortest positioning time first, with ageing). */
static struct request *disk_next(struct drive *drive, double start) {
  struct request *held[MOST_HELD], *best = NULL;
  uint64_t count = 0, most = drive->queue;
  for (long i = 0; i < drive->room; i++) {
    struct request *request = &drive->requests[i];
    if (request->stage != WAITING || request->issued > start) continue;
    if (count == most && request->serial > held[count - 1]->serial) continue;
    uint64_t place = count < most ? count++ : count - 1;
    for (; place > 0 && held[place - 1]->serial > request->serial; place--) held[place] = held[place - 1];
    held[place] = request;
  }
  if (!count || start - held[0]->held > drive->patience_s) return count ? held[0] : NULL;
  double best_done = INFINITY;
  for (uint64_t i = 0; i < count; i++) {
    held[i]->held = fmin(held[i]->held, start);
    double done = disk_done(drive, start, held[i]);
    if (done < best_done) {
      best_done = done;
      best = held[i];
    }
  }
  return best;
}

void drive_advance(struct drive *drive, double now) {
  while (drive->disk) {
    double start = drive->head_free, first = INFINITY;
    for (long i = 0; i < drive->room; i++)
      if (drive->requests[i].stage == WAITING) first = fmin(first, drive->requests[i].issued);
    start = larger(start, first);
    if (start > now) return;
    struct request *request = disk_next(drive, start);
    if (!request) return;
    request->done = disk_done(drive, start, request);
    request->stage = DECIDED;
    drive->head_free = request->done;
    if (request->kind != DRIVE_FLUSH) {
      drive->head_at = request->offset + request->size;
      drive->last_kind = request->kind;
    }
  }
}

static long ticket_of(struct drive *drive) {
  for (long i = 0; i < drive->room; i++)
    if (drive->requests[i].stage == FREE) return i;
  long room = drive->room ? 2 * drive->room : 64;
  struct request *larger_room = realloc(drive->requests, room * sizeof *larger_room);
  if (!larger_room) return -1;
  memset(larger_room + drive->room, 0, (room - drive->room) * sizeof *larger_room);
  long ticket = drive->room;
  drive->requests = larger_room;
  drive->room = room;
  return ticket;
}

long drive_submit(struct drive *drive, double now, int kind, uint64_t offset, uint64_t size) {
  drive_advance(drive, now);
  long ticket = ticket_of(drive);
  if (ticket < 0) return ticket;
  struct request *request = &drive->requests[ticket];
  *request = (struct request){WAITING, kind, drive->serial++, offset, size, now, INFINITY, INFINITY};
  if (kind == DRIVE_FLUSH && drive->flush_s <= 0) {
    /* nothing in it is volatile: Linux sends such a drive no flush */
    request->done = now;
    request->stage = DECIDED;
  } else if (drive->disk) {
    drive_advance(drive, now);
  } else {
    request->done = flash_done(drive, now, kind, size);
    request->stage = DECIDED;
  }
  return ticket;
}

double drive_done_at(const struct drive *drive, long ticket) { return drive->requests[ticket].done; }

double drive_decides_at(const struct drive *drive) {
  if (!drive->disk) return INFINITY;
  for (long i = 0; i < drive->room; i++)
    if (drive->requests[i].stage == WAITING) return drive->head_free;
  return INFINITY;
}

void drive_release(struct drive *drive, long ticket) { drive->requests[ticket].stage = FREE; }
