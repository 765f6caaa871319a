// An imitation of CUDA's driver and compiler for one device that is the processor: what is put on a stream is done when somebody asks for an
// event or waits, stream by stream and no further than asked for; addresses of the device are other numbers than those of the processor, and
// memory that the driver does not know is no device's. What is left when the device is closed ends the process.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long place;
enum { DONE = 0, INVALID = 1, NOT_READY = 600, LOST = 700, CAPTURE_UNSUPPORTED = 900 };
enum { PAGE = 4096, STEPS = 512, KNOWN = 256 };

static place hidden(const void *memory) { return (place)memory ^ 0x5a5a000000000000ull; }
static void *shown(place at) { return (void *)(at ^ 0x5a5a000000000000ull); }

struct step {
    void *to;
    const void *from;
    size_t bytes;
    unsigned blocks, threads;
    void *arguments[32];
    unsigned packets;
};
// Steps since the beginning, of which those from `done` on wait; while it records, `recorded` takes them.
struct graph { struct step steps[STEPS]; int count; };
struct stream { struct step steps[STEPS]; unsigned long put, done; struct graph *recorded; };
struct event { struct stream *stream; unsigned long behind; int timed; };

// What has been made and not been given back.
static int contexts, objects, launches, lost;

// Memory of the processor that the driver keeps in its place.
static struct { char *memory; size_t bytes; int mapped, ours; } known[KNOWN];
static int keep(void *memory, size_t bytes, int mapped, int ours)
{
    for (int i = 0; i < KNOWN; i++)
        if (!known[i].memory) {
            known[i].memory = memory, known[i].bytes = bytes, known[i].mapped = mapped, known[i].ours = ours;
            return DONE;
        }
    return INVALID;
}
static int kept(const void *memory, size_t bytes)
{
    for (int i = 0; i < KNOWN; i++)
        if (known[i].memory && (char *)memory >= known[i].memory && (char *)memory + bytes <= known[i].memory + known[i].bytes) return i;
    return -1;
}
static int give_up(void *memory, int ours)
{
    int i = kept(memory, 1);
    if (i < 0 || known[i].memory != memory || known[i].ours != ours) return INVALID;
    known[i].memory = 0;
    return DONE;
}

static void (*kernel)(void *, void *, void *, void *, unsigned, void *, void *, void *, void *, void *, void *, void *, void *);
static void (*be)(unsigned, unsigned, unsigned);
static int tables;

static void run(struct step *step)
{
    void **a = step->arguments;
    if (step->blocks == 0) {
        if (step->from) memcpy(step->to, step->from, step->bytes);
        else memset(step->to, step->packets, step->bytes);
        return;
    }
    for (unsigned block = 0; block < step->blocks; block++)
        for (unsigned thread = 0; thread < step->threads; thread++) {
            be(block, thread, step->threads);
            kernel(a[0], a[1], a[2], a[3], step->packets, a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
        }
}
static void run_until(struct stream *stream, unsigned long end)
{
    while (stream->done < end) run(&stream->steps[stream->done++ % STEPS]);
}
static int later(struct stream *stream, struct step step)
{
    if (stream->recorded) {
        if (stream->recorded->count == STEPS) return INVALID;
        stream->recorded->steps[stream->recorded->count++] = step;
        return DONE;
    }
    if (stream->put - stream->done == STEPS) return INVALID;
    stream->steps[stream->put++ % STEPS] = step;
    return DONE;
}
static int copy(struct stream *stream, void *to, const void *from, size_t bytes, const void *here)
{
    struct step step = { .to = to, .from = from, .bytes = bytes };
    if (stream->recorded && kept(here, bytes) < 0) return CAPTURE_UNSUPPORTED;
    return later(stream, step);
}

int cuInit(unsigned flags) { return DONE; }
int cuDriverGetVersion(int *version) { *version = 13000; return DONE; }
int cuDeviceGetCount(int *count) { *count = 1; return DONE; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal == 0 ? DONE : INVALID; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1ul << 30; return DONE; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? 9 : which == 19 || which == 99; return DONE; }
int cuDeviceGetName(char *name, int room, int device) { snprintf(name, room, "Imitation"); return DONE; }
int cuGetErrorName(int error, const char **name) { *name = error == LOST ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OF_SOME_KIND"; return DONE; }
int cuGetErrorString(int error, const char **text) { *text = "on purpose"; return DONE; }
int cuDevicePrimaryCtxRetain(void **context, int device) { contexts++; *context = &launches; return DONE; }
int cuDevicePrimaryCtxRelease_v2(int device)
{
    int left = objects;
    for (int i = 0; i < KNOWN; i++) left += known[i].memory != 0;
    if (--contexts == 0 && left && !lost) {
        fprintf(stderr, "%d things of the driver were not given back\n", left);
        abort();
    }
    return DONE;
}
int cuCtxSetCurrent(void *context) { return context == &launches ? DONE : INVALID; }

int cuStreamCreate(void **stream, unsigned flags)
{
    *stream = calloc(1, sizeof(struct stream)), objects++;
    return flags == 1 ? DONE : INVALID;
}
int cuStreamSynchronize(struct stream *stream) { run_until(stream, stream->put); return DONE; }
int cuStreamDestroy_v2(struct stream *stream) { free(stream), objects--; return DONE; }

int cuEventCreate(struct event **event, unsigned flags)
{
    *event = calloc(1, sizeof(struct event)), objects++;
    (*event)->timed = flags == 0;
    return flags == 0 || flags == 2 ? DONE : INVALID;
}
int cuEventRecord(struct event *event, struct stream *stream)
{
    if (stream->recorded) return CAPTURE_UNSUPPORTED;
    event->stream = stream, event->behind = stream->put;
    return DONE;
}
int cuEventQuery(struct event *event)
{
    if (!event->stream || event->stream->done >= event->behind) return DONE;
    run_until(event->stream, event->behind);
    return NOT_READY;
}
int cuEventElapsedTime_v2(float *milliseconds, struct event *from, struct event *to)
{
    if (!from->timed || !to->timed || !from->stream || from->stream != to->stream || to->stream->done < to->behind) return INVALID;
    *milliseconds = to->behind - from->behind;
    return DONE;
}
int cuEventDestroy_v2(struct event *event) { free(event), objects--; return DONE; }

int cuStreamBeginCapture_v2(struct stream *stream, int mode)
{
    if (stream->recorded) return INVALID;
    stream->recorded = calloc(1, sizeof(struct graph)), objects++;
    return DONE;
}
int cuStreamEndCapture(struct stream *stream, struct graph **graph)
{
    *graph = stream->recorded, stream->recorded = 0;
    return *graph ? DONE : INVALID;
}
int cuGraphInstantiateWithFlags(struct graph **made, struct graph *graph, unsigned long long flags)
{
    *made = malloc(sizeof *graph), objects++;
    **made = *graph;
    return DONE;
}
int cuGraphDestroy(struct graph *graph) { free(graph), objects--; return DONE; }
int cuGraphExecDestroy(struct graph *graph) { free(graph), objects--; return DONE; }
static int fails(void)
{
    const char *limit = getenv("RAVELIN_CUDA_LAUNCHES");
    return limit && ++launches > atoi(limit) ? lost = LOST : DONE;
}
int cuGraphLaunch(struct graph *graph, struct stream *stream)
{
    if (fails()) return LOST;
    for (int i = 0; i < graph->count; i++)
        if (later(stream, graph->steps[i]) != DONE) return INVALID;
    return DONE;
}

int cuMemAlloc_v2(place *at, size_t bytes) { *at = hidden(malloc(bytes)), objects++; return DONE; }
int cuMemFree_v2(place at) { free(shown(at)), objects--; return DONE; }
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    *memory = malloc(bytes);
    return keep(*memory, bytes, flags & 2, 0);
}
int cuMemFreeHost(void *memory)
{
    if (give_up(memory, 0) != DONE) return INVALID;
    free(memory);
    return DONE;
}
int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    if ((place)memory % PAGE || bytes % PAGE || !bytes || kept(memory, 1) >= 0) return INVALID;
    return keep(memory, bytes, flags & 2, 1);
}
int cuMemHostUnregister(void *memory) { return give_up(memory, 1); }
int cuMemHostGetDevicePointer_v2(place *at, void *memory, unsigned flags)
{
    int i = kept(memory, 1);
    *at = hidden(memory);
    return i >= 0 && known[i].mapped ? DONE : INVALID;
}
int cuMemsetD8Async(place at, unsigned char value, size_t bytes, struct stream *stream)
{
    struct step step = { .to = shown(at), .bytes = bytes, .packets = value };
    return later(stream, step);
}
int cuMemcpyHtoDAsync_v2(place to, const void *from, size_t bytes, struct stream *stream) { return copy(stream, shown(to), from, bytes, from); }
int cuMemcpyDtoHAsync_v2(void *to, place from, size_t bytes, struct stream *stream) { return copy(stream, to, shown(from), bytes, to); }

// The image of a kernel is its text: it is built when it is loaded.
int cuModuleLoadData(void **module, const char *text)
{
    unsigned long long number = 14695981039346656037ull;
    for (const char *c = text; *c; c++) number = (number ^ (unsigned char)*c) * 1099511628211ull;
    char source[512], built[512], command[2048];
    const char *folder = getenv("RAVELIN_CUDA_FOLDER"), *at = strstr(text, "PARAMETERS");
    const char *end = at ? strchr(at, '\n') : 0;
    tables = launches = 0;
    for (; at && (at = strstr(at, "const u32 *t")) && at < end; at++) tables++;
    if (!end) tables = 1;
    snprintf(source, sizeof source, "%s/kernel-%llx.cc", folder, number);
    snprintf(built, sizeof built, "%s/kernel-%llx.so", folder, number);
    // A text that has been built before is not built again.
    if ((*module = dlopen(built, RTLD_NOW | RTLD_LOCAL))) return DONE;
    FILE *file = fopen(source, "w");
    if (!file) return INVALID;
    fputs("#define __global__\n#define __device__\n#define __forceinline__ inline\n"
          "static struct { unsigned x; } blockIdx, threadIdx, blockDim;\n"
          "extern \"C\" void be(unsigned b, unsigned t, unsigned d) { blockIdx.x = b, threadIdx.x = t, blockDim.x = d; }\n"
          "static inline unsigned long __umul64hi(unsigned long a, unsigned long b) { return (unsigned __int128)a * b >> 64; }\n",
          file);
    fputs(text, file);
    fclose(file);
    snprintf(command, sizeof command, "c++ -w -O1 -fPIC -shared -o %s %s", built, source);
    *module = system(command) == 0 ? dlopen(built, RTLD_NOW | RTLD_LOCAL) : 0;
    return *module ? DONE : INVALID;
}
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    kernel = *function = dlsym(module, name);
    be = dlsym(module, "be");
    return kernel && be ? DONE : INVALID;
}
int cuModuleUnload(void *module) { return dlclose(module) == 0 ? DONE : INVALID; }
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned b, unsigned c, unsigned shared,
                   struct stream *stream, void **arguments, void **extra)
{
    struct step step = { .blocks = x, .threads = threads, .packets = *(unsigned *)arguments[4] };
    if (!stream->recorded && fails()) return LOST;
    if (function != (void *)kernel || y != 1 || z != 1 || b != 1 || c != 1 || tables > 8) return INVALID;
    for (int i = 0; i < 4; i++) step.arguments[i] = shown(*(place *)arguments[i]);
    for (int i = 0; i < tables; i++) step.arguments[4 + i] = shown(*(place *)arguments[5 + i]);
    return later(stream, step);
}

int nvrtcVersion(int *major, int *minor) { *major = 13, *minor = 0; return DONE; }
int nvrtcGetNumSupportedArchs(int *count) { *count = 2; return DONE; }
int nvrtcGetSupportedArchs(int *known) { known[0] = 75, known[1] = 90; return DONE; }
int nvrtcCreateProgram(char **program, const char *text, const char *name, int headers, void *a, void *b) { *program = strdup(text); return DONE; }
int nvrtcCompileProgram(char *program, int count, const char **options)
{
    return count == 1 && strcmp(options[0], "--gpu-architecture=sm_90") == 0 ? DONE : INVALID;
}
int nvrtcGetProgramLogSize(char *program, size_t *bytes) { *bytes = 1; return DONE; }
int nvrtcGetProgramLog(char *program, char *log) { *log = 0; return DONE; }
int nvrtcGetCUBINSize(char *program, size_t *bytes) { *bytes = strlen(program) + 1; return DONE; }
int nvrtcGetCUBIN(char *program, char *image) { strcpy(image, program); return DONE; }
int nvrtcDestroyProgram(char **program) { free(*program); return DONE; }
