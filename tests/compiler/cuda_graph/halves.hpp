static float widen(float16 x) {
  unsigned e = x.bits >> 10 & 31, m = x.bits & 1023;
  float y = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024.f + m, (int)e - 25) : std::ldexp((float)m, -24);
  return x.bits >> 15 ? -y : y;
}
static float16 narrow(float x, float16) {
  float16 y; float a = std::fabs(x); unsigned s = std::signbit(x) ? 0x8000 : 0;
  if (x != x) { y.bits = 0x7e00; return y; }
  int e; std::frexp(a, &e); e = e < -13 ? -13 : e;
  float q = std::rint(std::ldexp(a, 11 - e));
  float r = std::ldexp(q, e - 11);
  if (r >= 65520.f) { y.bits = s | 0x7c00; return y; }
  if (r < 6.103515625e-05f) y.bits = s | (unsigned short)std::ldexp(r, 24);
  else { std::frexp(r, &e); y.bits = s | ((e + 14) << 10) | ((unsigned)std::ldexp(r, 11 - e) & 1023); }
  return y;
}
