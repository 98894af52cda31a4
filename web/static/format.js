// How numbers, sizes and durations are written.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const count = (n) => whole.format(n);

// rate writes a number per second: one decimal below 10.
export const rate = (n) => (n > 0 && n < 0.05 ? "<0.1" : n < 9.95 ? tenth.format(n) : whole.format(n));

export const percent = (part, all) => (all > 0 ? tenth.format((100 * part) / all) + " %" : "0 %");

// bytes returns a number and its unit.
export function bytes(n) {
  let unit = 0;
  for (; n >= 1024 && unit < 4; unit++) n /= 1024;
  return [unit === 0 || n >= 100 ? whole.format(n) : tenth.format(n), ["B", "KB", "MB", "GB", "TB"][unit]];
}
export const size = (n) => bytes(n).join(" ");

// latency returns a number of µs in its unit.
export function latency(us) {
  if (us >= 1e6) return [tenth.format(us / 1e6), "s"];
  if (us >= 1000) return [tenth.format(us / 1000), "ms"];
  return [us < 10 ? tenth.format(us) : whole.format(us), "µs"];
}
export const took = (us) => (us > 0 ? latency(us).join(" ") : "–");

// duration writes ms, with a decimal below a minute.
export function duration(ms) {
  if (ms < 1000) return whole.format(ms) + " ms";
  return ms < 60e3 ? (Math.ceil(ms / 100) / 10).toFixed(1) + " s" : span(Math.floor(ms / 1000));
}

// span writes whole seconds in the two largest units.
export function span(s) {
  if (s < 1) return "0 s";
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, length]) => s >= length);
  return units.slice(first, first + 2)
    .map(([name, length], i) => [Math.floor((i ? s % units[first][1] : s) / length), name])
    .filter(([n], i) => i === 0 || n > 0).map((part) => part.join(" ")).join(" ");
}

export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
export const moment = (ms) => new Date(ms).toLocaleTimeString("en-GB");
