//! What a viewer asks for next.

use super::super::cmcd::{Facts, Object};
use super::super::player::{Fetch, Micros, Reading, What};
use super::Viewer;
use super::track::{Asked, Role, micros};
use media::manifest::read::Kind;
use media::manifest::read::{Part, Piece, Segments};
use std::sync::Arc;

/// What a track can do now.
enum Turn {
    Ask(Box<Fetch>),
    /// Nothing before then.
    Later(Micros),
    /// Nothing until something else happens.
    Nothing,
    /// There is no more.
    Over,
    /// Try again at once: something was decided or passed over.
    Again,
}

impl Viewer {
    /// The next request, if one is to be made now.
    pub(super) fn next_fetch(&mut self, now: Micros) -> Option<Fetch> {
        if self.stream.is_none() {
            if !self.manifest.is_free(now) {
                return None;
            }
            let id = self.take_id();
            self.manifest.begin(id, None);
            let part = self.plan.manifest.clone();
            let cmcd = self.tell(Object::Manifest, 0, None, None);
            let (what, reading) = (What::Manifest, Reading::Manifest);
            return Some(Fetch {
                id,
                what,
                part,
                reading,
                cmcd,
            });
        }
        for n in 0..self.tracks.len() {
            while self.ended.is_none() && self.tracks[n].asking.is_free(now) && !self.tracks[n].done
            {
                match self.turn(now, n) {
                    Turn::Ask(fetch) => return Some(*fetch),
                    Turn::Later(at) => {
                        self.tracks[n].asking.not_before = Some(at);
                        break;
                    }
                    Turn::Nothing => break,
                    Turn::Over => self.tracks[n].done = true,
                    Turn::Again => {}
                }
            }
        }
        // The last segment may have been what playing waited for.
        if self.all_done() {
            self.start();
        }
        None
    }

    fn take_id(&mut self) -> u32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    fn turn(&mut self, now: Micros, n: usize) -> Turn {
        let Some((level, source)) = self.tracks[n].next else {
            return self.choose(now, n);
        };
        let Some(segments) = self.segments(n, source) else {
            return self.ask_pieces(now, n, level, source);
        };
        let segment = self.tracks[n].next_segment(&segments);
        if segment >= segments.len() {
            return Turn::Over;
        }
        if n == 0 && !self.clock.has_started() {
            self.clock.begin_at(
                micros(segments.start(segment))
                    .min(micros(segments.start(0)))
                    .max(0),
            );
        }
        let duration_us = micros(segments.duration(segment));
        let end_us = micros(segments.start(segment)).saturating_add(duration_us);
        if segments.is_gap(segment) || duration_us <= 0 {
            let past_us = end_us.max(self.tracks[n].end_us.saturating_add(1));
            self.tracks[n].pass(past_us);
            return Turn::Again;
        }
        let mut asked = Asked {
            what: What::Init,
            at: now,
            level,
            source,
            segment,
            init: segments.init(segment).unwrap_or(0),
            duration_us,
        };
        let known = self.tracks[n].inits.contains(&(source as u16, asked.init));
        if let (Some(init), false) = (segments.init(segment), known) {
            return self.ask(n, asked, segments.init_part(init), Object::Init, None);
        }
        asked.what = if self.is_sound(n) {
            What::Audio
        } else {
            What::Video
        };
        let object = match (self.is_sound(n), self.main_kind()) {
            (true, _) => Object::Audio,
            (false, Kind::Muxed) => Object::Muxed,
            (false, _) => Object::Video,
        };
        if n == 0 {
            self.chosen += 1;
        }
        let next = if self.setup.cmcd.is_some() {
            segments.part(segment + 1)
        } else {
            Ok(None)
        };
        self.ask(
            n,
            asked,
            segments.part(segment),
            object,
            next.ok().flatten(),
        )
    }

    fn is_sound(&self, n: usize) -> bool {
        self.tracks[n].role == Role::Audio || self.main_kind() == Kind::Audio
    }

    /// Waits for room, then chooses a level and its source.
    fn choose(&mut self, now: Micros, n: usize) -> Turn {
        let track = &self.tracks[n];
        let next_us = track.segments().map_or(0, |segments| {
            micros(segments.duration(track.next_segment(segments)))
        });
        let ahead = track.end_us.saturating_sub(self.clock.position());
        let over = ahead.saturating_add(next_us) - (self.setup.buffer_max_s * 1e6) as i64;
        // A segment longer than the bound is asked for when there is nothing else.
        if over > 0 && ahead > 0 {
            self.tracks[n].full_since.get_or_insert(now);
            return if self.clock.is_playing() {
                Turn::Later(now + over as Micros)
            } else {
                Turn::Nothing
            };
        }
        if let Some(since) = self.tracks[n].full_since.take()
            && n == 0
        {
            let idled_s = now.saturating_sub(since) as f64 / 1e6;
            self.abr.iter_mut().for_each(|abr| abr.idled(idled_s));
        }
        let Some(stream) = self.stream.clone() else {
            return Turn::Nothing;
        };
        if self.tracks[n].role == Role::Audio {
            let level = self.tracks[0]
                .level
                .or(self.tracks[0].next.map(|(level, _)| level))
                .unwrap_or(0);
            let audio = self
                .levels
                .get(level)
                .and_then(|n| stream.levels[usize::from(*n)].audio);
            let Some(audio) = audio else {
                return Turn::Over;
            };
            self.tracks[n].next = Some((level, audio));
            return Turn::Again;
        }
        let segment_s = if next_us > 0 {
            next_us as f64 / 1e6
        } else {
            4.0
        };
        // The rule is lent out while it looks at the viewer.
        let Some(mut abr) = self.abr.take() else {
            return Turn::Nothing;
        };
        let choice = abr.choose(&self.view(segment_s));
        self.abr = Some(abr);
        let level = choice.level.min(self.levels.len().saturating_sub(1));
        self.tracks[n].next = Some((level, usize::from(self.levels[level])));
        if choice.wait_s > 0.001 {
            Turn::Later(now + (choice.wait_s.min(60.0) * 1e6) as Micros)
        } else {
            Turn::Again
        }
    }

    /// All segments of a source; what the manifest named is taken in.
    fn segments(&mut self, n: usize, source: usize) -> Option<Arc<Segments>> {
        let stream = self.stream.clone()?;
        let described = match self.tracks[n].role {
            Role::Main => &stream.levels.get(source)?.source,
            Role::Audio => stream.audios.get(source)?,
        };
        if let (None, Some(known)) = (self.tracks[n].known(source), &described.known) {
            self.tracks[n].learn(source, Arc::clone(known)).ok()?;
        }
        let read = usize::from(self.tracks[n].pieces[source]);
        let known = self.tracks[n].known(source)?;
        (described.known.is_some() || read >= described.pieces.len()).then(|| Arc::clone(known))
    }

    /// Playlists and indexes that must be read before segments are known.
    fn ask_pieces(&mut self, now: Micros, n: usize, level: usize, source: usize) -> Turn {
        let Some(stream) = self.stream.clone() else {
            return Turn::Nothing;
        };
        let described = match self.tracks[n].role {
            Role::Main => &stream.levels[source].source,
            Role::Audio => &stream.audios[source],
        };
        let read = usize::from(self.tracks[n].pieces[source]);
        let (what, part, reading) = match described.pieces.get(read) {
            Some(Piece::Playlist(url)) => {
                let part = Part {
                    url: url.clone(),
                    range: None,
                };
                (What::Playlist, part, Reading::Manifest)
            }
            Some(Piece::Index(index)) => (
                What::Index,
                index.part.clone(),
                Reading::Index(index.clone()),
            ),
            Some(Piece::Segments(segments)) => {
                let learnt = self.tracks[n].learn(source, Arc::new(segments.clone()));
                return if learnt.is_ok() {
                    Turn::Again
                } else {
                    Turn::Over
                };
            }
            None => return Turn::Over,
        };
        let asked = Asked {
            what,
            at: now,
            level,
            source,
            segment: 0,
            init: 0,
            duration_us: 0,
        };
        let id = self.take_id();
        self.tracks[n].asking.begin(id, Some(asked));
        let object = if what == What::Playlist {
            Object::Manifest
        } else {
            Object::Other
        };
        let cmcd = self.tell(object, n, Some(&asked), None);
        Turn::Ask(Box::new(Fetch {
            id,
            what,
            part,
            reading,
            cmcd,
        }))
    }

    fn ask(
        &mut self,
        n: usize,
        asked: Asked,
        part: media::Result<Option<Part>>,
        object: Object,
        next: Option<Part>,
    ) -> Turn {
        let Ok(Some(part)) = part else {
            // A segment whose address is none cannot be had by asking again.
            self.end(asked.at, super::End::Failed);
            return Turn::Nothing;
        };
        let id = self.take_id();
        self.tracks[n].asking.begin(id, Some(asked));
        let cmcd = self.tell(object, n, Some(&asked), next.map(|next| (&part, next)));
        Turn::Ask(Box::new(Fetch {
            id,
            what: asked.what,
            part,
            reading: Reading::Discard,
            cmcd,
        }))
    }

    fn tell(
        &mut self,
        object: Object,
        n: usize,
        asked: Option<&Asked>,
        next: Option<(&Part, Part)>,
    ) -> Option<Box<Facts>> {
        self.sequence = self.sequence.wrapping_add(1);
        let style = self.setup.cmcd?;
        let facts = self.facts(style, object, n, asked, next);
        self.starved = false;
        Some(Box::new(facts))
    }
}
