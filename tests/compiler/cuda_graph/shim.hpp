#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <ucontext.h>
#include <unordered_map>
#include <utility>
#include <vector>
#define __global__
#define __device__
#define __launch_bounds__(threads)
struct Index { unsigned x; };
static Index blockIdx, threadIdx, blockDim, gridDim;
static unsigned turn;  // how many barriers the block has passed
static char wrong[200];
#define TELL(...) (wrong[0] ? 0 : std::snprintf(wrong, sizeof wrong, __VA_ARGS__))

// Who reads and writes an element: two threads may not, if one of them writes and no barrier of their block lies between.
struct Last {
  bool any, by_others, by_other_blocks;
  unsigned block, thread, turn;
  bool is_own() const { return block == blockIdx.x && (turn < ::turn || (thread == threadIdx.x && !by_others)); }
  bool is_apart() const { return any && (by_other_blocks || !is_own()); }
  void note() {
    by_other_blocks |= any && block != blockIdx.x;
    by_others = any && block == blockIdx.x && turn == ::turn && (by_others || thread != threadIdx.x);
    any = true, block = blockIdx.x, thread = threadIdx.x, turn = ::turn;
  }
};
struct Element { Last read, written; };
static std::unordered_map<const void*, Element> elements;
static void touch(const void* place, bool writes) {
  Element& own = elements[place];
  if (own.written.is_apart() || (writes && own.read.is_apart()))
    TELL("threads race: block %u, thread %u %s", blockIdx.x, threadIdx.x, writes ? "writes" : "reads");
  (writes ? own.written : own.read).note();
}
template <class T> struct Watched {
  T* start;
  unsigned long long count;
  T& at(unsigned long long i, bool writes) const {
    static std::remove_const_t<T> nothing;
    if (i >= count) return TELL("element %llu of %llu", i, count), nothing;
    touch(start + i, writes);
    return start[i];
  }
  const T& operator[](unsigned long long i) const { return at(i, false); }
  T& written(unsigned long long i) const { return at(i, true); }
};
struct Room { std::vector<char> bytes; size_t each; };
static std::vector<Room*> rooms;
template <class T> struct Shared : Room, Watched<T> {
  Shared(size_t count) : Room{std::vector<char>(count * sizeof(T)), sizeof(T)}, Watched<T>{(T*)bytes.data(), count} {
    rooms.push_back(this);
  }
  const T& operator[](unsigned long long i) const {
    if (i < this->count && !elements[this->start + i].written.any) TELL("shared memory is read before it is written");
    return this->at(i, false);
  }
};
static void begin_block(unsigned block) {
  blockIdx.x = block, turn = 0;
  for (Room* room : rooms) for (size_t i = 0; i < room->bytes.size(); i += room->each) elements.erase(&room->bytes[i]);
  for (Room* room : rooms) std::memset(room->bytes.data(), 0xff, room->bytes.size());
}

static ucontext_t fibers[1024];
static jmp_buf back, places[1024];  // swapcontext would ask the system for its mask of signals each time
static int waits[1024];  // at the barrier of which line; -1: nowhere any more
static int votes;
static std::vector<char> stacks(1024 << 14);
static void (*body)(void*);
static void* given;
static void wait(int line) {
  const unsigned t = threadIdx.x;
  waits[t] = line;
  if (!_setjmp(places[t])) _longjmp(back, 1);
  threadIdx.x = t;
}
static int wait_or(int line, int vote) {
  votes |= vote;
  wait(line);
  const int any = votes;
  wait(line);
  votes = 0;
  wait(line);
  return any;
}
#define __syncthreads() wait(__LINE__)
#define __syncthreads_or(vote) wait_or(__LINE__, vote)
static void enter() { body(given); wait(-1); }
static void go_on(unsigned t, bool begins) {
  threadIdx.x = t;
  if (_setjmp(back)) return;
  if (begins) setcontext(&fibers[t]);
  _longjmp(places[t], 1);
}
static void run_block(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    getcontext(&fibers[t]);
    fibers[t].uc_stack.ss_sp = &stacks[t << 14];
    fibers[t].uc_stack.ss_size = 1 << 14;
    makecontext(&fibers[t], enter, 0);
  }
  for (waits[0] = 0; waits[0] >= 0; ++turn) {
    for (unsigned t = 0; t < threads; ++t) go_on(t, turn == 0);
    for (unsigned t = 1; t < threads; ++t) if (waits[t] != waits[0]) { TELL("threads wait at two barriers"); return; }
  }
}
template <class P> struct Argument { static P of(void* start, unsigned long long) { return (P)start; } };
template <class T> struct Argument<Watched<T>> {
  static Watched<T> of(void* start, unsigned long long count) { return {(T*)start, count}; }
};
template <class... P, size_t... I>
static void call(void (*f)(P...), void** a, const unsigned long long* sizes, std::index_sequence<I...>) {
  f(Argument<P>::of(a[I], sizes[I])...);
}
template <class... P> static const char* run(
    void (*f)(P...), void** a, const unsigned long long* sizes, unsigned blocks, unsigned threads, bool barriers) {
  auto once = [&] { call(f, a, sizes, std::index_sequence_for<P...>()); };
  given = &once;
  body = [](void* self) { (*(decltype(once)*)self)(); };
  gridDim.x = blocks, blockDim.x = threads, wrong[0] = 0;
  elements.clear();
  for (unsigned b = 0; b < blocks; ++b) {
    begin_block(b);
    if (barriers) run_block(threads);
    else for (unsigned t = 0; t < threads; ++t) { threadIdx.x = t; body(given); }
  }
  return wrong;
}
