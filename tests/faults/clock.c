/* A clock that is wrong by as many seconds as the file CLOCK_OFFSET says, for the processes that preload it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *offset;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("CLOCK_OFFSET");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0)
        return;
    void *found = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    offset = found == MAP_FAILED ? 0 : found;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *offset;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact))
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now)
        *now = exact.tv_sec;
    return exact.tv_sec;
}
