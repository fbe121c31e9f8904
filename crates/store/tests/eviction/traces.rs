//! Request traces, generated from seeds.

use std::collections::HashMap;

/// A sequence of requests, each with the object's number and the object's size in bytes.
pub struct Trace {
    pub name: &'static str,
    pub requests: Vec<(u64, u64)>,
}

impl Trace {
    /// Returns the total size of all distinct requested objects in bytes.
    pub fn unique_bytes(&self) -> u64 {
        let each: HashMap<u64, u64> = self.requests.iter().copied().collect();
        each.values().sum()
    }
}

const REQUESTS: usize = 100_000;

/// Generates requests for objects of 20 KB to 1.2 MB. The n-th object is requested with weight
/// 1/n^0.9.
pub fn zipf_trace() -> Trace {
    let (mut random, popular) = (Random(1), Zipf::new(10_000, 0.9));
    let requests = (0..REQUESTS)
        .map(|_| popular.sample_object(&mut random))
        .map(object_size);
    Trace {
        name: "popularity",
        requests: requests.collect(),
    }
}

/// Mixes requests like those of [`zipf_trace`] with scans. Every third request is for an object
/// that is requested only once.
pub fn zipf_and_scan() -> Trace {
    let (mut random, popular) = (Random(2), Zipf::new(10_000, 0.9));
    let requests = (0..REQUESTS as u64).map(|n| match n % 3 {
        0 => 1_000_000 + n,
        _ => popular.sample_object(&mut random),
    });
    Trace {
        name: "popularity, a third scans",
        requests: requests.map(object_size).collect(),
    }
}

/// Simulates 200 concurrent viewers. Each viewer starts at the first segment of a film in one of
/// three bitrates, and stops after each segment with a probability of 3 %.
pub fn session_trace() -> Trace {
    const FILMS: usize = 300;
    const SEGMENTS: u64 = 100;
    let (mut random, popular) = (Random(3), Zipf::new(FILMS, 0.9));
    let bitrates = [125_000, 375_000, 750_000, 1_500_000];
    let mut viewers: Vec<(u64, u64, u64)> = vec![(0, 0, SEGMENTS); 200];
    let mut requests = Vec::with_capacity(REQUESTS);
    while requests.len() < REQUESTS {
        let at = random.number_below(viewers.len() as u64) as usize;
        let (film, bitrate, segment) = &mut viewers[at];
        if *segment >= SEGMENTS || random.number_below(100) < 3 {
            // Half of the viewers get the highest bitrate, and none gets the lowest.
            let highest = bitrates.len() as u64 - 1;
            (*film, *bitrate) = (
                popular.sample_object(&mut random),
                highest - random.number_below(8) / 5 - random.number_below(5) / 4,
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

/// Returns an object's number with its size, which is derived from the number.
fn object_size(object: u64) -> (u64, u64) {
    let mixed = object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (object, 20_000 + mixed % 1_180_000)
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next_number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn number_below(&mut self, bound: u64) -> u64 {
        (self.next_number() >> 33) % bound
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

    fn sample_object(&self, random: &mut Random) -> u64 {
        let all = self.0.last().unwrap();
        let at = random.next_number() as f64 / u64::MAX as f64 * all;
        self.0.partition_point(|sum| *sum < at) as u64
    }
}
