//! The JSON form of numbers that can be infinite.
//!
//! JSON has no infinity. Without this module, infinity would become `null`, and a stored report
//! could not be read again. The ratio of a positive number to zero is infinite and is written as
//! `"infinity"`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The JSON form of a number. The number must not be negative infinity, which would become `null`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum FiniteOrInfinite {
    Finite(f64),
    Infinite(InfinityWord),
}

/// The word that represents infinity in JSON.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum InfinityWord {
    Infinity,
}

/// A value with a JSON form. The value is a number, a pair of numbers, or an optional pair.
pub(super) trait JsonRepresentable: Copy {
    type JsonForm: Serialize + DeserializeOwned;
    fn to_json_form(self) -> Self::JsonForm;
    fn from_json_form(form: Self::JsonForm) -> Self;
}

impl JsonRepresentable for f64 {
    type JsonForm = FiniteOrInfinite;

    fn to_json_form(self) -> FiniteOrInfinite {
        match self == f64::INFINITY {
            true => FiniteOrInfinite::Infinite(InfinityWord::Infinity),
            false => FiniteOrInfinite::Finite(self),
        }
    }

    fn from_json_form(form: FiniteOrInfinite) -> f64 {
        match form {
            FiniteOrInfinite::Finite(number) => number,
            FiniteOrInfinite::Infinite(InfinityWord::Infinity) => f64::INFINITY,
        }
    }
}

impl JsonRepresentable for [f64; 2] {
    type JsonForm = [FiniteOrInfinite; 2];

    fn to_json_form(self) -> [FiniteOrInfinite; 2] {
        self.map(f64::to_json_form)
    }

    fn from_json_form(form: [FiniteOrInfinite; 2]) -> [f64; 2] {
        form.map(f64::from_json_form)
    }
}

impl JsonRepresentable for Option<[f64; 2]> {
    type JsonForm = Option<[FiniteOrInfinite; 2]>;

    fn to_json_form(self) -> Self::JsonForm {
        self.map(JsonRepresentable::to_json_form)
    }

    fn from_json_form(form: Self::JsonForm) -> Self {
        form.map(JsonRepresentable::from_json_form)
    }
}

/// Writes numbers in their JSON form ([`JsonRepresentable::JsonForm`]).
///
/// # Errors
/// The serializer fails.
pub(super) fn serialize<T: JsonRepresentable, S: Serializer>(
    numbers: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    numbers.to_json_form().serialize(serializer)
}

/// Reads numbers from their JSON form.
///
/// # Errors
/// The input does not have the JSON form of `T`.
pub(super) fn deserialize<'de, T: JsonRepresentable, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    T::JsonForm::deserialize(deserializer).map(T::from_json_form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Numbers {
        #[serde(with = "super")]
        one: f64,
        #[serde(with = "super", default)]
        some: Option<[f64; 2]>,
    }

    #[test]
    fn infinite_numbers_survive_json() {
        for (one, some, text) in [
            (0.0, None, r#"{"one":0.0,"some":null}"#),
            (
                f64::INFINITY,
                Some([0.1, f64::INFINITY]),
                r#"{"one":"infinity","some":[0.1,"infinity"]}"#,
            ),
        ] {
            let numbers = Numbers { one, some };
            assert_eq!(serde_json::to_string(&numbers).unwrap(), text);
            assert_eq!(serde_json::from_str::<Numbers>(text).unwrap(), numbers);
        }
        assert!(serde_json::from_str::<Numbers>(r#"{"one":"more"}"#).is_err());
        assert_eq!(
            serde_json::from_str::<Numbers>(r#"{"one":3}"#).unwrap().one,
            3.0
        );
    }
}
