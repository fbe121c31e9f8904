//! Tests of the parsing of rate profiles, and of the number of requests that profiles schedule.

use super::*;

fn parse(text: &str, duration_s: Option<f64>) -> Result<RateProfile, ProfileError> {
    let file = "# time, rate\n0 10\n10,20\n\n20 20\n20 0\n30 0\n";
    RateProfile::parse_profile(text, duration_s, |_| Ok(file.into()))
}

#[test]
fn profiles_offer_the_expected_number_of_requests() {
    for (text, duration, length, count) in [
        ("100", Some(5.0), 5.0, 500.0),
        ("6000/min", Some(5.0), 5.0, 500.0),
        ("ramp:0..100", Some(10.0), 10.0, 500.0),
        ("ramp:10..500", Some(10.0), 10.0, 2550.0),
        ("steps:50+50/10s..600", None, 120.0, 39_000.0),
        ("steps:50+50/10s..600", Some(15.0), 15.0, 1000.0),
        ("sine:100~50/10s", Some(20.0), 20.0, 2000.0),
        ("file:x", None, 30.0, 350.0),
        ("file:x", Some(5.0), 5.0, 62.5),
    ] {
        let profile = parse(text, duration).unwrap();
        assert_eq!(profile.duration_s(), length, "{text}");
        let total = profile.due_by(f64::INFINITY);
        assert!((total - count).abs() < 1e-6, "{text}: {total}");
    }
    assert_eq!(
        parse("steps:50+50/10s..600", None)
            .unwrap()
            .measured_steps()
            .len(),
        12
    );
}

#[test]
fn invalid_profiles_are_refused() {
    for text in [
        "",
        "x",
        "-1",
        "1e99",
        "nan",
        "ramp:1",
        "steps:5+0/1s..10",
        "steps:5+1e-9/1s..10",
        "sine:1~2/1s",
        "sine:1~1/0s",
        "0",
        "ramp:0..0",
        "moon:1",
        "10/year",
    ] {
        assert!(parse(text, Some(10.0)).is_err(), "{text}");
    }
    let error = parse("-5", Some(10.0)).unwrap_err().to_string();
    assert!(error.contains("use 0 to 10000000"), "{error}");
    for text in ["", "1", "1 2 3", "5 1\n4 1", "x 1", "1 x", "nan 1"] {
        let profile = RateProfile::parse_profile("file:x", None, |_| Ok(text.into()));
        assert!(profile.is_err(), "{text}");
    }
}
