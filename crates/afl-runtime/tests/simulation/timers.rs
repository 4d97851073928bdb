//! Timers in random programs: waits, and work that no agent takes and that times out.

use afl_store::seed::SeededRng;

/// Work that no agent does.
const NEVER: &str = "event facet Never() => (out: Long)\n";
/// The longest timer, in milliseconds: a third of a lease.
const LONGEST: usize = 20_000;

/// Adds steps that only timers end to the blocks of a program. They change no result.
pub(crate) fn with_timers(program: &str, seed: u64) -> String {
    let mut rng = SeededRng::new(seed ^ 0x71e5);
    let mut text = NEVER.to_owned();
    for (at, line) in program.lines().enumerate() {
        if line.starts_with("  yield ") {
            let ms = 1 + rng.below(LONGEST);
            let timer = match rng.below(4) {
                0 => format!("  w{at} = afl.time.Wait(ms = {ms})\n"),
                1 => format!("  t{at} = Never() with Timeout(ms = {ms}) catch {{ yield Never(out = 0) }}\n"),
                _ => String::new(),
            };
            text.push_str(&timer);
        }
        text += line;
        text.push('\n');
    }
    text
}
