//! The catalogue of the claims of the source documents, and of the runs that measure these claims.

use super::judgement::ClaimFinding;
use super::run_data::RunData;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The claims of all source documents, and the runs that measure these claims.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClaimCatalogue {
    /// The source documents.
    pub document: Vec<CitedDocument>,
    /// Runs of experiments. Runs with more verdicts per minute come first.
    pub run: Vec<CataloguedRun>,
    /// The claims.
    pub claim: Vec<CataloguedClaim>,
    /// Sentences that explain results.
    #[serde(default)]
    pub sentence: Vec<ResultSentence>,
}

/// A source document.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CitedDocument {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
}

/// A run of an experiment at one scale.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CataloguedRun {
    /// Identifier of the run, which is also the name of its result folder.
    pub id: String,
    /// Path of the experiment document, relative to the catalogue.
    pub experiment: String,
    /// Scale.
    pub scale: Option<String>,
    /// Estimated duration in minutes.
    pub minutes: u32,
}

/// A claim of a source document.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CataloguedClaim {
    /// Number of the claim, by which expectations refer to the claim.
    pub number: u32,
    /// Number of the source document.
    pub document: u32,
    /// The claim in words.
    pub claim: String,
    /// Variables whose values the source does not report. Parts of the claim with equal values of
    /// these variables form a group. The part with the least favorable verdict decides a group, and
    /// the group with the best verdict decides the claim.
    #[serde(default)]
    pub any_of: Vec<String>,
    /// The part of the claim that cannot be measured on this testbed, with the physical reason.
    pub not_measurable: Option<String>,
}

/// A sentence about one expectation of a claim.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultSentence {
    /// Number of the claim.
    pub claim: u32,
    /// The expectation.
    pub that: String,
    /// The sentence. `{value}` is replaced by the measured value, and `{name}` by the value of the
    /// variable `name`.
    pub text: String,
}

/// An invalid catalogue.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// A syntax error or an unknown key.
    #[error(transparent)]
    Syntax(#[from] toml::de::Error),
    /// A name or number that occurs twice.
    #[error("duplicate {0}")]
    Duplicate(String),
    /// A claim of a document that the catalogue does not list.
    #[error("claim {claim} is of document {document}, which the catalogue does not list")]
    UnknownDocument {
        /// Number of the claim.
        claim: u32,
        /// Number of the document.
        document: u32,
    },
    /// A claim that no run measures.
    #[error(
        "no run contains an expectation with claim = {0}; add one, or state in not-measurable why \
         it is physically impossible"
    )]
    Unmeasured(u32),
    /// An expectation that no run contains, or that belongs to a claim that does not exist.
    #[error("{experiment}: the expectation \"{that}\" is of claim {claim}, which {reason}")]
    Unused {
        /// The experiment document.
        experiment: String,
        /// The expectation.
        that: String,
        /// Number of the claim.
        claim: u32,
        /// The cause.
        reason: &'static str,
    },
    /// A sentence that matches no expectation, or has a placeholder without a value.
    #[error("the sentence about claim {claim}, \"{that}\": {reason}")]
    Sentence {
        /// The expectation.
        that: String,
        /// Number of the claim.
        claim: u32,
        /// The cause.
        reason: String,
    },
}

impl ClaimCatalogue {
    /// Parses a catalogue.
    ///
    /// # Errors
    /// The catalogue has a syntax error, contains a duplicate, or refers to an unknown document.
    pub fn parse_catalogue(text: &str) -> Result<ClaimCatalogue, CatalogueError> {
        let catalogue: ClaimCatalogue = toml::from_str(text)?;
        let documents = catalogue.document.iter();
        let numbers = documents.map(|document| format!("document {}", document.number));
        let runs = catalogue.run.iter().map(|run| format!("run {}", run.id));
        let claims = catalogue.claim.iter();
        let claims = claims.map(|claim| format!("claim {}", claim.number));
        let mut seen = BTreeSet::new();
        for name in numbers.chain(runs).chain(claims) {
            if !seen.insert(name.clone()) {
                return Err(CatalogueError::Duplicate(name));
            }
        }
        let unknown = catalogue
            .claim
            .iter()
            .find(|claim| !seen.contains(&format!("document {}", claim.document)));
        match unknown {
            Some(claim) => Err(CatalogueError::UnknownDocument {
                claim: claim.number,
                document: claim.document,
            }),
            None => Ok(catalogue),
        }
    }
}

/// Checks that every claim is measured, or that the catalogue states a physical reason why the
/// claim cannot be measured. Also checks that every expectation with a claim number belongs to a
/// claim of the catalogue and is part of a run.
pub(super) fn check_coverage(
    catalogue: &ClaimCatalogue,
    runs: &[RunData],
    found: &[ClaimFinding],
) -> Result<(), CatalogueError> {
    let reasoned = |number: u32| {
        let mut claims = catalogue.claim.iter();
        claims.any(|claim| claim.number == number && claim.not_measurable.is_some())
    };
    let bare = |claim: &&ClaimFinding| claim.parts.is_empty() && !reasoned(claim.number);
    if let Some(claim) = found.iter().find(bare) {
        return Err(CatalogueError::Unmeasured(claim.number));
    }
    for (run, data) in catalogue.run.iter().zip(runs) {
        for expect in &data.plan.document.expect {
            let expect = expect.get_ref();
            let Some(number) = expect.claim else { continue };
            let claim = found.iter().find(|claim| claim.number == number);
            let is_of = |part: &super::judgement::ClaimPart| part.result.that == expect.that;
            let reason = match claim {
                None => "the catalogue does not list",
                Some(claim) if !claim.parts.iter().any(is_of) => "no run of the catalogue contains",
                Some(_) => continue,
            };
            return Err(CatalogueError::Unused {
                experiment: run.experiment.clone(),
                that: expect.that.clone(),
                claim: number,
                reason,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "document = [{ number = 1, title = 'x' }]\n\
         run = [{ id = 'a', experiment = 'a.toml', minutes = 1 }]\n";

    #[test]
    fn duplicates_and_unknown_documents_are_refused() {
        let claim = |number: u32, document: u32| {
            format!("[[claim]]\nnumber = {number}\ndocument = {document}\nclaim = 'x'\n")
        };
        let parse = |text: String| {
            ClaimCatalogue::parse_catalogue(&text).map_err(|error| error.to_string())
        };
        assert!(parse(HEAD.to_owned() + &claim(1, 1) + &claim(2, 1)).is_ok());
        let twice = parse(HEAD.to_owned() + &claim(1, 1) + &claim(1, 1)).unwrap_err();
        assert_eq!(twice, "duplicate claim 1");
        let unknown = parse(HEAD.to_owned() + &claim(1, 2)).unwrap_err();
        assert!(unknown.contains("claim 1 is of document 2"), "{unknown}");
    }
}
