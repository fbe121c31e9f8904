//! What is asked for, made from seeds.

use std::collections::HashMap;

/// Requests in order: which object, and its size in bytes.
pub struct Trace {
    pub name: &'static str,
    pub requests: Vec<(u64, u64)>,
}

impl Trace {
    /// Bytes of all objects that are asked for.
    pub fn bytes(&self) -> u64 {
        let each: HashMap<u64, u64> = self.requests.iter().copied().collect();
        each.values().sum()
    }
}

const REQUESTS: usize = 100_000;

/// Objects of 20 KB to 1.2 MB asked for by popularity: the n-th as often as 1/n^0.9.
pub fn zipf() -> Trace {
    let (mut random, popular) = (Random(1), Zipf::new(10_000, 0.9));
    let requests = (0..REQUESTS).map(|_| popular.one(&mut random)).map(sized);
    Trace {
        name: "popularity",
        requests: requests.collect(),
    }
}

/// The same, and every third request for something that nobody asks for again.
pub fn zipf_and_scan() -> Trace {
    let (mut random, popular) = (Random(2), Zipf::new(10_000, 0.9));
    let requests = (0..REQUESTS as u64).map(|n| match n % 3 {
        0 => 1_000_000 + n,
        _ => popular.one(&mut random),
    });
    Trace {
        name: "popularity, a third scans",
        requests: requests.map(sized).collect(),
    }
}

/// Viewers of films: 200 at a time, each from a film's begin, one segment after the other in one of
/// four bitrates, leaving after each with 3 %.
pub fn sessions() -> Trace {
    const FILMS: usize = 300;
    const SEGMENTS: u64 = 100;
    let (mut random, popular) = (Random(3), Zipf::new(FILMS, 0.9));
    let bitrates = [125_000, 375_000, 750_000, 1_500_000];
    let mut viewers: Vec<(u64, u64, u64)> = vec![(0, 0, SEGMENTS); 200];
    let mut requests = Vec::with_capacity(REQUESTS);
    while requests.len() < REQUESTS {
        let at = random.below(viewers.len() as u64) as usize;
        let (film, bitrate, segment) = &mut viewers[at];
        if *segment >= SEGMENTS || random.below(100) < 3 {
            // Most take the highest bitrate.
            let highest = bitrates.len() as u64 - 1;
            (*film, *bitrate) = (
                popular.one(&mut random),
                highest - random.below(8) / 5 - random.below(5) / 4,
            );
            *segment = 0;
        }
        let object = (*film * 4 + *bitrate) * SEGMENTS + *segment;
        requests.push((object, bitrates[*bitrate as usize]));
        *segment += 1;
    }
    Trace {
        name: "viewers",
        requests,
    }
}

/// An object's size follows from its number.
fn sized(object: u64) -> (u64, u64) {
    let mixed = object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (object, 20_000 + mixed % 1_180_000)
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }
}

struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize, skew: f64) -> Zipf {
        let mut sum = 0.0;
        let sums = (1..=count).map(|n| {
            sum += (n as f64).powf(-skew);
            sum
        });
        Zipf(sums.collect())
    }

    fn one(&self, random: &mut Random) -> u64 {
        let all = self.0.last().unwrap();
        let at = random.next() as f64 / u64::MAX as f64 * all;
        self.0.partition_point(|sum| *sum < at) as u64
    }
}
