//! Judges the claims of the source documents by the raw records of all runs.
//!
//! [`catalogue`] lists the claims, and the runs that measure the claims. [`judgement`] computes a
//! verdict for each claim from the experiment documents and the records. [`page`] writes the claims
//! and their verdicts to a page. The bounds come from the present experiment documents. If a bound
//! was changed, records from before the change are not used for the claim.

mod catalogue;
mod judgement;
mod page;
mod run_data;
mod sentences;
mod surprises;

pub use catalogue::{CatalogueError, ClaimCatalogue};

use crate::experiment::{
    ExperimentDocument, FileError, RecordFileError, RunPlan, RunRecord, UnknownScale,
};
use catalogue::CataloguedRun;
use judgement::{ClaimFinding, judge_claims};
use run_data::RunData;
use std::path::{Path, PathBuf};

/// All claims with their verdicts.
#[derive(Debug)]
pub struct Findings {
    catalogue: ClaimCatalogue,
    claims: Vec<ClaimFinding>,
}

/// The reason why the findings cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum FindingsError {
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Records that cannot be read.
    #[error(transparent)]
    Records(#[from] RecordFileError),
    /// An invalid catalogue.
    #[error("{}: {error}", path.display())]
    Catalogue {
        /// The catalogue.
        path: PathBuf,
        /// Its fault.
        error: CatalogueError,
    },
    /// An invalid experiment document.
    #[error("{}:{fault}", path.display())]
    Document {
        /// The document.
        path: PathBuf,
        /// Its fault.
        fault: crate::experiment::DocumentFault,
    },
    /// A scale that the document does not define.
    #[error("{}: {error}", path.display())]
    Scale {
        /// The document.
        path: PathBuf,
        /// The cause.
        error: UnknownScale,
    },
}

impl Findings {
    /// Reads a catalogue, its experiment documents, and the result folders. The name of a result
    /// folder is the identifier of its run in the catalogue. Folders with other names are ignored.
    ///
    /// # Errors
    /// A file cannot be read or is invalid, or the catalogue does not match the experiment
    /// documents.
    pub fn judge_result_folders(
        catalogue: &Path,
        folders: &[PathBuf],
    ) -> Result<Findings, FindingsError> {
        let base = catalogue.parent().unwrap_or(Path::new("."));
        let parsed = ClaimCatalogue::parse_catalogue(&read_text(catalogue)?);
        let parsed = parsed.map_err(|error| FindingsError::Catalogue {
            path: catalogue.to_owned(),
            error,
        })?;
        let runs = parsed.run.iter().map(|run| read_run(run, base, folders));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let claims = judge_claims(&parsed, &runs);
        let invalid = |error| FindingsError::Catalogue {
            path: catalogue.to_owned(),
            error,
        };
        catalogue::check_coverage(&parsed, &runs, &claims).map_err(invalid)?;
        sentences::check_sentences(&parsed, &claims).map_err(invalid)?;
        Ok(Findings {
            catalogue: parsed,
            claims,
        })
    }
}

/// Reads the experiment document and the records of a run. If no folder has the identifier of the
/// run, there are no records.
fn read_run(
    run: &CataloguedRun,
    base: &Path,
    folders: &[PathBuf],
) -> Result<RunData, FindingsError> {
    let path = base.join(&run.experiment);
    let text = read_text(&path)?;
    let document =
        ExperimentDocument::parse_toml(&text).map_err(|fault| FindingsError::Document {
            path: path.clone(),
            fault,
        })?;
    let plan = RunPlan::new(document, run.scale.as_deref());
    let plan = plan.map_err(|error| FindingsError::Scale { path, error })?;
    let of_run = |folder: &&PathBuf| folder.file_name().is_some_and(|name| *name == *run.id);
    let records = folders
        .iter()
        .find(of_run)
        .map(|dir| RunRecord::read_all_records(dir));
    Ok(RunData {
        plan,
        records: records.transpose()?.unwrap_or_default(),
    })
}

fn read_text(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|error| FileError::new(path, error))
}
