"""Draws panels of figures as SVG: axes, lines, points with their names."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 520, 360, 66, 16, 40, 48
STYLE = "text{font:12px system-ui,sans-serif;fill:#333}.axis{stroke:#999}.grid{stroke:#ddd}.title{font-weight:600}"


class Panel:
    """A panel is a plot from x0 to the right; it turns data coordinates into pixels."""

    def __init__(self, x0, title, across, up, xs, ys):
        self.x0, self.parts = x0, []
        (self.low, self.high), (self.bottom, self.top) = xs, ys
        self.text(LEFT, 20, title, "title")
        self.text(LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 8, across, anchor="middle")
        self.parts.append(f'<text transform="translate({x0 + 14},{HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(up)}</text>')

    def at(self, x, y):
        right = self.x0 + LEFT + (x - self.low) / (self.high - self.low) * (WIDTH - LEFT - RIGHT)
        return right, HEIGHT - BOTTOM - (y - self.bottom) / (self.top - self.bottom) * (HEIGHT - TOP - BOTTOM)

    def text(self, x, y, words, style="", anchor="start", colour=""):
        fill = f' style="fill:{colour}"' if colour else ""
        self.parts.append(f'<text class="{style}" x="{self.x0 + x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{fill}>{escape(words)}</text>')

    def axes(self, xs, ys, x_names, y_names):
        for y, name in zip(ys, y_names, strict=True):
            (x1, py), (x2, _) = self.at(self.low, y), self.at(self.high, y)
            self.parts.append(f'<line class="grid" x1="{x1:.1f}" x2="{x2:.1f}" y1="{py:.1f}" y2="{py:.1f}"/>')
            self.text(LEFT - 6, py + 4, name, anchor="end")
        for x, name in zip(xs, x_names, strict=True):
            self.text(self.at(x, self.bottom)[0] - self.x0, HEIGHT - BOTTOM + 16, name, anchor="middle")
        (x1, y1), (x2, _) = self.at(self.low, self.bottom), self.at(self.high, self.bottom)
        self.parts.append(f'<line class="axis" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y1:.1f}"/>')

    def line(self, points, colour, dash=""):
        where = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self.at(*point) for point in points))
        self.parts.append(f'<polyline points="{where}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')

    def dot(self, point, colour, name, words="", size=4):
        x, y = self.at(*point)
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"><title>{escape(name)}</title></circle>')
        if words:
            self.text(x - self.x0 + 7, y + 4, words, colour=colour)


def ticks(low, high, step):
    first = -(-low // step)
    return [round((first + i) * step, 6) for i in range(int((high - first * step) / step + 1e-9) + 1)]


def write(path, panels):
    """Writes panels side by side."""
    body = "\n".join(part for panel in panels for part in panel.parts)
    size = f'width="{len(panels) * WIDTH}" height="{HEIGHT}" viewBox="0 0 {len(panels) * WIDTH} {HEIGHT}"'
    page = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    path.write_text(page)
