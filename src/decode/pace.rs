//! How long the drafts of one source should be, by how its last ones did.
//!
//! A draft that was right throughout doubles the length, one that was not sets it to one more than
//! what was right: a pass is slower for being longer. If too little of the last drafts was right,
//! the source is not asked for a while, twice as long each time. By hand, at most 8: right drafts
//! are 1, 2, 4, 8 long; after one of which 3 tokens were right, 4.
//!
//! All of it depends on counts, never on clocks, so that a run can be repeated.

/// The pace of one source.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    most: usize,
    pays: f64,
    /// Tokens to draft next time.
    len: usize,
    /// Not before this many tokens of output.
    until: usize,
    /// Tokens of the next pause.
    pause: usize,
    /// Drafts since the last pause.
    drafts: usize,
    /// Tokens drafted, and those that were right, the older ones counting less.
    drafted: f64,
    right: f64,
}

impl Pace {
    /// Tokens of the first pause, and of the longest.
    const PAUSES: (usize, usize) = (8, 256);
    /// Drafts that are given a chance before a pause.
    const CHANCES: usize = 4;
    /// How much the past counts for when a new draft is judged.
    const FADE: f64 = 0.75;

    pub fn new(most: usize, pays: f64) -> Self {
        let pause = Self::PAUSES.0;
        Self { most, pays, len: most, until: 0, pause, drafts: 0, drafted: 0.0, right: 0.0 }
    }

    /// How many tokens to draft after `position` tokens of output.
    pub fn len(&self, position: usize) -> usize {
        if position < self.until { 0 } else { self.len }
    }

    /// Learns from a draft of which the first `right` tokens were right.
    pub fn learn(&mut self, drafted: usize, right: usize, position: usize) {
        self.len = match right == drafted {
            true => (self.len * 2).min(self.most),
            false => (right + 1).min(self.most),
        };
        self.drafts += 1;
        self.drafted = self.drafted * Self::FADE + drafted as f64;
        self.right = self.right * Self::FADE + right as f64;
        if self.right >= self.pays * self.drafted {
            self.pause = Self::PAUSES.0;
        } else if self.drafts >= Self::CHANCES {
            self.until = position + self.pause;
            self.pause = (self.pause * 2).min(Self::PAUSES.1);
            (self.drafts, self.drafted, self.right) = (0, 0.0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_success() {
        let mut pace = Pace::new(8, 0.25);
        assert_eq!(pace.len(0), 8);
        pace.learn(8, 3, 4);
        assert_eq!(pace.len(4), 4);
        pace.learn(4, 4, 9);
        assert_eq!(pace.len(9), 8);
        pace.learn(8, 8, 18);
        assert_eq!(pace.len(18), 8);
    }

    #[test]
    fn what_does_not_pay_is_asked_less_and_less() {
        let mut pace = Pace::new(8, 0.25);
        let (mut asked, mut position) = (Vec::new(), 0);
        while position < 2000 {
            position += 1;
            let len = pace.len(position);
            if len > 0 {
                asked.push(position);
                pace.learn(len, 0, position);
            }
        }
        // Bursts of four with pauses of 8, 16, 32, ... between them.
        assert_eq!(asked[..9], [1, 2, 3, 4, 12, 13, 14, 15, 31]);
        assert!(asked.len() < 4 * 13, "{} drafts of 2000", asked.len());
        // One that begins to be right is trusted again.
        for _ in 0..8 {
            position = pace.until.max(position) + 1;
            pace.learn(1, 1, position);
        }
        assert_eq!((pace.len(position), pace.pause), (8, 8));
        let mut patient = Pace::new(4, 0.0);
        (0..100).for_each(|position| patient.learn(1, 0, position));
        assert_eq!(patient.len(100), 1);
    }
}
