//! Sentences of the catalogue that state a result for readers who know neither the source nor the
//! experiment.

use super::catalogue::{CatalogueError, ClaimCatalogue, ResultSentence};
use super::judgement::{ClaimFinding, ClaimPart};
use crate::experiment::fill_placeholders;
use crate::report::table::format_number;

fn is_sentence_about_part(
    sentence: &ResultSentence,
    claim: &ClaimFinding,
    part: &ClaimPart,
) -> bool {
    sentence.claim == claim.number && sentence.that == part.result.that
}

fn fill_sentence(sentence: &ResultSentence, part: &ClaimPart) -> Result<String, String> {
    let value = |name: &str| match name {
        "value" => Some(format_number(part.result.value)),
        name => part.result.cell.get(name).cloned(),
    };
    fill_placeholders(&sentence.text, &value).map_err(|unknown| unknown.to_string())
}

/// Returns the sentence about a part, with the placeholders filled in. Returns `None` if the
/// catalogue has no sentence about this part.
pub(super) fn find_sentence(
    catalogue: &ClaimCatalogue,
    claim: &ClaimFinding,
    part: &ClaimPart,
) -> Option<String> {
    let mut sentences = catalogue.sentence.iter();
    let sentence = sentences.find(|sentence| is_sentence_about_part(sentence, claim, part))?;
    // This call cannot fail, because `check_sentences` has already filled in this sentence.
    fill_sentence(sentence, part).ok()
}

/// Checks that every sentence belongs to an expectation, and that all placeholders of the sentence
/// have values.
pub(super) fn check_sentences(
    catalogue: &ClaimCatalogue,
    claims: &[ClaimFinding],
) -> Result<(), CatalogueError> {
    for sentence in &catalogue.sentence {
        let invalid = |reason: String| CatalogueError::Sentence {
            that: sentence.that.clone(),
            claim: sentence.claim,
            reason,
        };
        let parts = claims
            .iter()
            .flat_map(|claim| claim.parts.iter().map(move |part| (claim, part)));
        let about = parts.filter(|(claim, part)| is_sentence_about_part(sentence, claim, part));
        let filled = about.map(|(_, part)| fill_sentence(sentence, part));
        let filled: Vec<String> = filled.collect::<Result<_, _>>().map_err(invalid)?;
        if filled.is_empty() {
            return Err(invalid("no run contains this expectation".to_owned()));
        }
    }
    Ok(())
}
