//! Linear regression.

use crate::mean;

/// The line `y = intercept + slope · x`, fitted to points by least squares.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearFit {
    /// y at x = 0.
    pub intercept: f64,
    /// Change of y per unit of x.
    pub slope: f64,
    /// Share of the variance of y that the line explains.
    pub r_squared: f64,
    /// Residuals in the order of the points.
    pub residuals: Vec<f64>,
}

impl LinearFit {
    /// Fits a line to points (x, y). Returns `None` for fewer than three points, if x is constant,
    /// or if a value is not finite.
    pub fn from_points(points: &[(f64, f64)]) -> Option<LinearFit> {
        if points.len() < 3 || points.iter().any(|(x, y)| !(x * y).is_finite()) {
            return None;
        }
        let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let (middle_x, middle_y) = (mean(&xs), mean(&ys));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points
                .iter()
                .map(|(x, y)| of(x - middle_x, y - middle_y))
                .sum()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        if xx == 0.0 {
            return None;
        }
        let slope = xy / xx;
        let intercept = middle_y - slope * middle_x;
        let residuals: Vec<f64> = points
            .iter()
            .map(|(x, y)| y - intercept - slope * x)
            .collect();
        let left: f64 = residuals.iter().map(|residual| residual * residual).sum();
        Some(LinearFit {
            intercept,
            slope,
            r_squared: if yy == 0.0 { 1.0 } else { 1.0 - left / yy },
            residuals,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference data set Norris of NIST, as pairs (y, x).
    const NORRIS: [(f64, f64); 36] = [
        (0.1, 0.2),
        (338.8, 337.4),
        (118.1, 118.2),
        (888.0, 884.6),
        (9.2, 10.1),
        (228.1, 226.5),
        (668.5, 666.3),
        (998.5, 996.3),
        (449.1, 448.6),
        (778.9, 777.0),
        (559.2, 558.2),
        (0.3, 0.4),
        (0.1, 0.6),
        (778.1, 775.5),
        (668.8, 666.9),
        (339.3, 338.0),
        (448.9, 447.5),
        (10.8, 11.6),
        (557.7, 556.0),
        (228.3, 228.1),
        (998.0, 995.8),
        (888.8, 887.6),
        (119.6, 120.2),
        (0.3, 0.3),
        (0.6, 0.3),
        (557.6, 556.8),
        (339.3, 339.1),
        (888.0, 887.2),
        (998.5, 999.0),
        (778.9, 779.0),
        (10.2, 11.1),
        (117.6, 118.3),
        (228.9, 229.2),
        (668.4, 669.1),
        (449.2, 448.9),
        (0.2, 0.5),
    ];

    #[test]
    fn certified_values() {
        let fit = LinearFit::from_points(&NORRIS.map(|(y, x)| (x, y))).unwrap();
        assert!(
            (fit.intercept - -0.262_323_073_774_029).abs() < 1e-10,
            "{fit:?}"
        );
        assert!((fit.slope - 1.002_116_818_020_45).abs() < 1e-12, "{fit:?}");
        assert!(
            (fit.r_squared - 0.999_993_745_883_712).abs() < 1e-12,
            "{fit:?}"
        );
        assert!(fit.residuals.iter().sum::<f64>().abs() < 1e-9);
    }

    #[test]
    fn no_line_without_a_spread() {
        assert_eq!(LinearFit::from_points(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(
            LinearFit::from_points(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]),
            None
        );
        assert_eq!(
            LinearFit::from_points(&[(1.0, 1.0), (2.0, f64::NAN), (3.0, 3.0)]),
            None
        );
        let flat = LinearFit::from_points(&[(1.0, 4.0), (2.0, 4.0), (3.0, 4.0)]).unwrap();
        assert_eq!(
            (flat.slope, flat.intercept, flat.r_squared),
            (0.0, 4.0, 1.0)
        );
    }
}
