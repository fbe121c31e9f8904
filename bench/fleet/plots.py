"""The plots of a run, as SVG."""

import collections

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1000, 320, 50, 80, 90, 40
BLUE, RED, YELLOW, GREY = "#4f7cac", "#c1292e", "#f2c14e", "#999"


def draw_responses(timelines):
    """Draws responses per second as bars, failures in red, and the time of each event as a band."""
    spans = [1 + max((line["end_ms"] for line in figures.requests), default=0) / 1000 for _, figures, _, _ in timelines]
    scale_x = (WIDTH - LEFT - RIGHT) / sum(spans)
    counts = [collections.Counter(int(line["end_ms"] / 1000) for line in figures.requests) for _, figures, _, _ in timelines]
    most = max((max(count.values(), default=1) for count in counts), default=1)
    scale_y = (HEIGHT - TOP - BOTTOM) / most
    parts, x = [], LEFT
    for (event, figures, begin, end), span, count in zip(timelines, spans, counts, strict=True):
        left = x + max(0, begin - figures.start) * scale_x
        parts.append(rectangle(left, TOP, max(1, (end - begin) * scale_x), HEIGHT - TOP - BOTTOM, YELLOW, 0.35))
        failures = collections.Counter(int(line["end_ms"] / 1000) for line in figures.failures())
        for second, number in sorted(count.items()):
            parts.append(bar(x + second * scale_x, scale_x, number * scale_y, BLUE))
            if failed := failures[second]:
                parts.append(bar(x + second * scale_x, scale_x, max(2, failed * scale_y), RED))
        parts.append(line(x, TOP, x, HEIGHT - BOTTOM, GREY))
        parts.append(slanted(x + 4, event.name))
        x += span * scale_x
    return frame(parts, most, 0, "responses per second; failed in red; yellow: the event")


def draw_bars(rows, caption, limits):
    """Draws (name, value, label above the bar), and limits as red lines."""
    most = max([value for _, value, _ in rows] + limits) or 1
    scale_y, step = (HEIGHT - TOP - BOTTOM) / most, (WIDTH - LEFT - RIGHT) / max(1, len(rows))
    parts = []
    for n, (name, value, label) in enumerate(rows):
        x, y = LEFT + n * step, HEIGHT - BOTTOM - value * scale_y
        parts.append(bar(x + step * 0.2, step * 0.6, value * scale_y, BLUE))
        parts.append(f'<text x="{x + step / 2:.1f}" y="{y - 4:.1f}" text-anchor="middle">{label}</text>')
        parts.append(slanted(x + step / 2, name))
    for limit in limits:
        y = HEIGHT - BOTTOM - limit * scale_y
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, RED))
    return frame(parts, f"{most:.3g}", 0, caption)


def draw_reads(reads, timelines, limit):
    """Draws the bytes read from the storage per distinct byte over the run, from (time, read, distinct)."""
    begin = timelines[0][1].start
    span = max([time for time, _, _ in reads] + [end for *_, end in timelines]) - begin
    scale_x = (WIDTH - LEFT - RIGHT) / span
    ratios = [(time, read / distinct) for time, read, distinct in reads if distinct and time >= begin]
    most = max([ratio for _, ratio in ratios] + [limit]) + 0.01
    place_y = lambda ratio: HEIGHT - BOTTOM - (ratio - 1) / (most - 1) * (HEIGHT - TOP - BOTTOM)
    parts = [line(LEFT, place_y(limit), WIDTH - RIGHT, place_y(limit), RED)]
    for event, _, start, end in timelines:
        left = LEFT + (start - begin) * scale_x
        parts.append(rectangle(left, TOP, (end - start) * scale_x, HEIGHT - TOP - BOTTOM, YELLOW, 0.35))
        parts.append(slanted(left + 4, event.name))
    points = " ".join(f"{LEFT + (time - begin) * scale_x:.1f},{place_y(ratio):.1f}" for time, ratio in ratios)
    parts.append(f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    caption = f"bytes of media read from the storage per distinct byte; red: {limit}, the bound until origins restart"
    return frame(parts, f"{most:.2f}", 1, caption)


def frame(parts, top, bottom, caption):
    axis = (f'<text x="{LEFT - 6}" y="{TOP + 4}" text-anchor="end">{top}</text>'
            f'<text x="{LEFT - 6}" y="{HEIGHT - BOTTOM}" text-anchor="end">{bottom}</text>')  # fmt: skip
    below = f'<text x="{LEFT}" y="{HEIGHT - 14}">{caption}</text>'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{"".join(parts)}{axis}{below}</svg>\n')  # fmt: skip


def slanted(x, text):
    return f'<text transform="translate({x:.1f},{TOP - 4}) rotate(-35)">{text}</text>'


def line(x1, y1, x2, y2, color):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"/>'


def bar(x, width, height, color):
    return rectangle(x, HEIGHT - BOTTOM - height, max(0.5, width - 0.3), height, color)


def rectangle(x, y, width, height, color, opacity=1):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}" opacity="{opacity}"/>'
